import { isObject } from './frames.mjs';
import { objectState } from './json-prefix.mjs';

/**
 * What stands in a session file, in order: entries, and stretches that could not be read.
 * `last` says that nothing stands behind a stretch in its line.
 * @typedef {{entry: Record<string, any>} | {bad: string, last: boolean}} Piece
 */

/** So many beginnings are followed up in a broken line. */
const BEGINNINGS = 1_000;

/** @param {string} text @returns {any} undefined when it is no JSON */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether an object that was found inside a broken line is an entry of its own, and not a part of one. */
const isRecord = (value) =>
  isObject(value) && typeof value.type === 'string' && (value.type === 'session' || ('id' in value && 'parentId' in value));

/**
 * The end of the object that begins here, strings minded.
 * @param {string} text @param {number} from
 * @returns {number} behind its last brace, or -1
 */
function endOfObject(text, from) {
  let depth = 0;
  let quoted = false;
  for (let at = from; at < text.length; at++) {
    const c = text[at];
    if (quoted) {
      if (c === '\\') at++;
      else if (c === '"') quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === '{') depth++;
    else if (c === '}' && --depth === 0) return at + 1;
  }
  return -1;
}

/**
 * The whole records of a line that is not one JSON object, and its rest as bad stretches.
 * @param {string} line
 * @returns {Piece[]}
 */
function takeApart(line) {
  const pieces = [];
  let bad = '';
  let left = BEGINNINGS;
  const flush = (last = false) => {
    if (bad.trim() !== '') pieces.push({ bad, last });
    bad = '';
  };
  let at = 0;
  while (at < line.length) {
    const open = line.indexOf('{', at);
    if (open < 0) break;
    bad += line.slice(at, open);
    const begins = /^\{\s*"/.test(line.slice(open, open + 16)) && left-- > 0;
    const end = begins ? endOfObject(line, open) : -1;
    const value = end < 0 ? undefined : parse(line.slice(open, end));
    if (isRecord(value)) {
      flush();
      pieces.push({ entry: value });
      at = end;
    } else {
      bad += '{';
      at = open + 1;
    }
  }
  bad += line.slice(at);
  flush(true);
  return pieces;
}

/**
 * @param {Buffer} bytes of a session file
 * @returns {{pieces: Piece[], badLines: number}}
 */
export function readRecords(bytes) {
  const pieces = [];
  let badLines = 0;
  for (const raw of bytes.toString('utf8').replace(/^\ufeff/, '').split('\n')) {
    const line = raw.replace(/^\ufeff/, '').replace(/\r$/, '');
    if (line.trim() === '') continue;
    const value = parse(line);
    const found = isObject(value) ? [{ entry: value }] : takeApart(line);
    if (found.some((piece) => 'bad' in piece)) badLines++;
    pieces.push(...found);
  }
  return { pieces, badLines };
}

/**
 * Whether a stretch that could not be read stands for a user message: when it shows one, or when it begins like a record
 * and is mangled inside. One that was merely cut at the end of its line was none.
 * @param {{bad: string, last: boolean}} stretch
 */
export function mayBePrompt({ bad, last }) {
  if (/"role"\s*:\s*"user"/.test(bad)) return true;
  return bad.trimStart().startsWith('{') && !(last && objectState(bad) === 'cut');
}
