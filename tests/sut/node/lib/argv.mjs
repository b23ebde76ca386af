import { isAbsolute } from 'node:path';
import { badRequest } from './failure.mjs';

/** What one element of an argument list may have on Linux, without its final NUL. */
const LONGEST_ELEMENT = 131_071;

/**
 * The task as the child reads it. It begins with a word, so that it is never taken for an option or a file.
 * @param {string} task
 * @param {{allowNested?: boolean, branch?: string | null}} [facts]
 */
export function formatTask(task, { allowNested = false, branch = null } = {}) {
  const parts = [`Task: ${task}`, ''];
  if (branch) parts.push(`Branch of this worktree: ${branch}`);
  parts.push(allowNested ? 'You may start agents of your own.' : 'Start no agents of your own.');
  return parts.join('\n');
}

/** @param {unknown} value @returns {boolean} */
const given = (value) => value !== undefined && value !== null && value !== '';

/**
 * D4: the argument list of a child, the task as its last element.
 * @param {object} request the parameters of a spawn
 * @returns {string[]}
 */
export function childArgv(request) {
  if (!isAbsolute(request.sessionFile)) throw badRequest(`the session file ${request.sessionFile} is no absolute path`);
  const argv = ['pi', '--session', request.sessionFile];
  const option = (name, value) => given(value) && argv.push(name, value);
  option('--model', request.model);
  option('--provider', request.provider);
  if (request.tools?.length > 0) argv.push('--tools', request.tools.join(','));
  if (request.noExtensions ?? true) argv.push('--no-extensions');
  for (const extension of request.extensions ?? []) argv.push('-e', extension);
  for (const skill of request.skills ?? []) argv.push('--skill', skill);
  if (request.noSkills ?? true) argv.push('--no-skills');
  if (request.noContextFiles ?? true) argv.push('--no-context-files');
  option('--system-prompt', request.systemPrompt);
  argv.push(formatTask(request.task, { allowNested: request.allowNested ?? false, branch: request.branch }));
  argv.forEach(checkElement);
  return argv;
}

/** @param {unknown} element */
function checkElement(element) {
  if (typeof element !== 'string') throw badRequest('an element of the argument list is no text');
  if (element.includes('\0')) throw badRequest('an element of the argument list holds a NUL');
  const bytes = Buffer.byteLength(element);
  if (bytes > LONGEST_ELEMENT) {
    throw badRequest(`an element of the argument list has ${bytes} bytes, and at most ${LONGEST_ELEMENT} can be passed`);
  }
}
