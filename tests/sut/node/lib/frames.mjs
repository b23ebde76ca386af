/**
 * What a line of the core is: an answer, an error that belongs to no call, or noise.
 * @typedef {{type: 'answer', id: number, result?: object, error?: object, broken?: boolean}
 *   | {type: 'orphan', error: object} | {type: 'other'} | {type: 'noise'}} Frame
 */

/** No message at all. */
const NOISE = Object.freeze({ type: 'noise' });
/** A message that is none of this client's. */
const OTHER = Object.freeze({ type: 'other' });

// Before a message: a byte order mark, terminal sequences (CSI, OSC, single escapes), other control characters.
// eslint-disable-next-line no-control-regex
const CONTROLS = /^(?:\ufeff|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_=>0-9a-z]|[\x00-\x1a\x1c-\x20\x7f])*/;

/** @param {unknown} value @returns {value is Record<string, any>} */
export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param {string} text @returns {unknown} undefined when it is no JSON */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @param {string} text @returns {string} without what a terminal would not show before and behind an object */
function undecorated(text) {
  const from = CONTROLS.exec(text)[0].length;
  const end = text.lastIndexOf('}') + 1;
  const tail = text.slice(end);
  return text.slice(from, CONTROLS.exec(tail)[0].length === tail.length ? end : undefined);
}

/**
 * @param {Buffer} line
 * @returns {Frame}
 */
export function readFrame(line) {
  const text = line.toString('utf8');
  const value = parse(text) ?? parse(undecorated(text));
  if (!isObject(value)) return NOISE;
  if ('method' in value) return OTHER;
  const { result, error } = value;
  if (value.id === null || value.id === undefined || value.id === '') return isObject(error) ? { type: 'orphan', error } : OTHER;
  const id = typeof value.id === 'string' && /^(?:0|[1-9][0-9]*)$/.test(value.id) ? Number(value.id) : value.id;
  if (!Number.isInteger(id)) return OTHER;
  if (isObject(error) && (result === undefined || result === null)) return { type: 'answer', id, error };
  const nothing = error === undefined || error === null;
  if (nothing && (isObject(result) || (result === null && 'result' in value))) return { type: 'answer', id, result: result ?? {} };
  return { type: 'answer', id, broken: true };
}

/** @param {Buffer} line that is no frame @returns {boolean} whether it may be one whose end is missing */
export const beginsLikeJson = (line) => line.toString('utf8').replace(CONTROLS, '').startsWith('{');

/** @param {unknown} kind @returns {string} in lower case, with underscores */
export const normalKind = (kind) =>
  typeof kind === 'string' ? kind.toLowerCase().replace(/[-\s]/g, '_') : '';
