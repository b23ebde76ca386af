import { isObject } from './frames.mjs';
import { badRequest } from './failure.mjs';

/** What a value has to be, and the words for it. */
const KINDS = {
  text: [(value) => typeof value === 'string' && value.isWellFormed(), 'a text of whole characters'],
  flag: [(value) => typeof value === 'boolean', 'true or false'],
  number: [(value) => typeof value === 'number', 'a number'],
  texts: [(value) => Array.isArray(value) && value.every(isText), 'a list of texts'],
  env: [
    (value) => isObject(value) && Object.entries(value).every(([name, v]) => isText(name) && (v === null || isText(v))),
    'an object of texts',
  ],
};

/** @param {unknown} value @returns {boolean} */
function isText(value) {
  return KINDS.text[0](value);
}

const SPAWN = {
  handle: 'text', runId: 'text', agent: 'text', task: 'text', cwd: 'text', sessionFile: 'text',
  worktree: 'flag?', branch: 'text?', model: 'text?', provider: 'text?', tools: 'texts?', extensions: 'texts?', skills: 'texts?',
  noExtensions: 'flag?', noSkills: 'flag?', noContextFiles: 'flag?', systemPrompt: 'text?', env: 'env?', allowNested: 'flag?', mode: 'text?',
};

/**
 * The members that a call is made of; null counts as left out.
 * @param {Record<string, unknown>} params
 * @param {Record<string, string>} shape
 * @returns {Record<string, any>}
 */
export function take(params, shape) {
  const taken = {};
  for (const [name, word] of Object.entries(shape)) {
    const value = params[name] ?? undefined;
    const optional = word.endsWith('?');
    const [holds, words] = KINDS[optional ? word.slice(0, -1) : word];
    if (value === undefined && optional) continue;
    if (!holds(value)) throw badRequest(`${name} has to be ${words}`);
    taken[name] = value;
  }
  return taken;
}

/** @param {Record<string, unknown>} params of a spawn @returns {Record<string, any>} */
export function takeSpawn(params) {
  const request = take(params, SPAWN);
  if (request.handle === '') throw badRequest('the handle is empty');
  return { worktree: false, ...request };
}
