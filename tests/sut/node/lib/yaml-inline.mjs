// The parts of YAML that stand on one line: quotes, plain scalars, keys, flow collections.

/** A text that is no YAML, or none that is read here. */
export class YamlError extends Error {}

const ESCAPES = { 0: '\0', a: '\x07', b: '\b', t: '\t', '\t': '\t', n: '\n', v: '\v', f: '\f', r: '\r', e: '\x1b', N: '\x85', _: '\xa0', L: '\u2028', P: '\u2029' };
const HEX = { x: 2, u: 4, U: 8 };

/** @param {string} text @param {number} from at its opening quote @returns {number} behind the closing one, or -1 */
export function quotedEnd(text, from) {
  const quote = text[from];
  for (let at = from + 1; at < text.length; at++) {
    if (quote === '"' && text[at] === '\\') at++;
    else if (text[at] === quote) {
      if (quote === "'" && text[at + 1] === "'") at++;
      else return at + 1;
    }
  }
  return -1;
}

/** @param {string} quoted with its quotes @returns {string} */
export function unquote(quoted) {
  const inner = quoted.slice(1, -1);
  const fold = (text) => text.replace(/[ \t]*\n[ \t]*/g, ' ');
  if (quoted[0] === "'") return fold(inner.replaceAll("''", "'"));
  return fold(inner.replace(/\\\n[ \t]*/g, '')).replace(/\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[^])/g, (_, escape) => {
    if (escape.length > 1) return String.fromCodePoint(Math.min(0x10ffff, parseInt(escape.slice(1), 16)));
    if (escape in HEX) throw new YamlError(`\\${escape} needs ${HEX[escape]} digits`);
    return ESCAPES[escape] ?? escape;
  });
}

/** @param {string} text @returns {string} without a comment at its end */
export function stripComment(text) {
  const at = text.search(/(?:^|\s)#/);
  return (at < 0 ? text : text.slice(0, at)).trimEnd();
}

/** @param {string} text @returns {{rest: string, anchor: string | null}} without anchors and tags before it */
export function takeProperties(text) {
  let rest = text.trimStart();
  let anchor = null;
  for (let found; (found = /^(?:&(\S+)|!\S*)(?:\s+|$)/.exec(rest)) !== null; rest = rest.slice(found[0].length)) {
    anchor = found[1] ?? anchor;
  }
  return { rest, anchor };
}

/** @param {string} text @returns {string} what a plain scalar on one line says */
export function plainScalar(text, continued = false) {
  const bare = stripComment(text);
  if (!continued && /^[,\]}%@`]/.test(bare)) throw new YamlError(`a plain text cannot begin with ${bare[0]}`);
  if (/:(?:\s|$)/.test(bare)) throw new YamlError('a key stands where none can be');
  return bare;
}

/**
 * The key that a line of a block mapping begins with.
 * @param {string} content
 * @param {Map<string, object>} anchors
 * @returns {{key: object, rest: string} | null}
 */
export function findKey(content, anchors) {
  const { rest, anchor } = takeProperties(content);
  const found = bareKey(rest, anchors);
  if (found !== null && anchor !== null) anchors.set(anchor, found.key);
  return found;
}

function bareKey(text, anchors) {
  const behind = (end) => /^\s*:(?=\s|$)/.exec(text.slice(end));
  const result = (key, end, colon) => (colon === null ? null : { key, rest: text.slice(end + colon[0].length).trimStart() });
  if (text[0] === '"' || text[0] === "'") {
    const end = quotedEnd(text, 0);
    return end < 0 || behind(end) === null ? null : result({ scalar: unquote(text.slice(0, end)) }, end, behind(end));
  }
  if (text[0] === '[' || text[0] === '{') {
    const end = flowEnd(text);
    return end < 0 || behind(end) === null ? null : result(readFlow(text.slice(0, end), anchors), end, behind(end));
  }
  if (/^[#|>%@`]/.test(text)) return null;
  const plain = /^(.*?)\s*:(?=\s|$)/.exec(text);
  if (plain === null || stripComment(plain[1]) !== plain[1]) return null;
  const key = plain[1].startsWith('*') ? (anchors.get(plain[1].slice(1)) ?? { scalar: null }) : { scalar: plain[1] };
  return { key, rest: text.slice(plain[0].length).trimStart() };
}

/** @param {string} text that begins with a bracket @returns {number} behind its closing one, or -1 */
function flowEnd(text) {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const c = text[at];
    if ((c === '"' || c === "'") && /[\s,:[{(]/.test(text[at - 1] ?? ' ')) {
      const end = quotedEnd(text, at);
      if (end < 0) return -1;
      at = end - 1;
    } else if (c === '#' && /\s/.test(text[at - 1] ?? ' ')) {
      const line = text.indexOf('\n', at);
      if (line < 0) return -1;
      at = line;
    } else if (c === '[' || c === '{') depth++;
    else if ((c === ']' || c === '}') && --depth === 0) return at + 1;
  }
  return -1;
}

/** @param {string} text @returns {boolean} */
export const flowClosed = (text) => flowEnd(text) > 0;

/**
 * @param {string} text a whole flow collection
 * @param {Map<string, object>} anchors
 */
export function readFlow(text, anchors) {
  let at = 0;
  const blank = () => {
    at += /^(?:\s|(?<=\s)#[^\n]*)*/.exec(text.slice(at))[0].length;
  };
  const value = () => {
    blank();
    const properties = takeProperties(text.slice(at));
    at = text.length - properties.rest.length;
    const node = bare();
    if (properties.anchor !== null) anchors.set(properties.anchor, node);
    return node;
  };
  const bare = () => {
    const c = text[at];
    if (c === '[' || c === '{') return collection(c === '[' ? ']' : '}');
    if (c === '"' || c === "'") {
      const end = quotedEnd(text, at);
      if (end < 0) throw new YamlError('a quoted text has no end');
      const quoted = text.slice(at, end);
      at = end;
      return { scalar: unquote(quoted) };
    }
    const plain = /^(?:[^,[\]{}:#\n]|:(?![\s,[\]{}]|$)|(?<!\s)#|\n)*/.exec(text.slice(at))[0];
    at += plain.length;
    const scalar = plain.trim().replace(/\s*\n\s*/g, ' ');
    return scalar.startsWith('*') ? (anchors.get(scalar.slice(1)) ?? { scalar: null }) : { scalar };
  };
  const collection = (close) => {
    const entries = [];
    const items = [];
    at++;
    for (blank(); text[at] !== close; blank()) {
      if (at >= text.length) throw new YamlError('a flow collection has no end');
      const from = at;
      const explicit = /^\?\s/.test(text.slice(at));
      if (explicit) at++;
      const key = value();
      blank();
      if (text[at] === ':') {
        at++;
        entries.push([key, value()]);
      } else if (close === '}' || explicit) entries.push([key, { scalar: null }]);
      else items.push(key);
      blank();
      if (text[at] === ',') at++;
      else if (text[at] !== close || at === from) throw new YamlError('a flow collection is not well formed');
    }
    at++;
    return { entries, items };
  };
  const node = value();
  if (stripComment(text.slice(at)).trim() !== '') throw new YamlError('something stands behind a flow collection');
  return node;
}
