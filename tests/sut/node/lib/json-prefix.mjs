const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
const WORDS = ['true', 'false', 'null'];
const SPACE = /[ \t\r\n]*/y;
const RUN = /[-+.0-9a-zA-Z]*/y;
const CUT = -1;
const MANGLED = -2;

/** @param {RegExp} sticky @param {string} text @param {number} at @returns {number} behind what matches there */
function behind(sticky, text, at) {
  sticky.lastIndex = at;
  sticky.exec(text);
  return sticky.lastIndex;
}

/**
 * @param {string} text @param {number} at its first quote
 * @returns {number} behind its last quote, CUT or MANGLED
 */
function endOfString(text, at) {
  for (let i = at + 1; i < text.length; i++) {
    const c = text[i];
    if (c === '"') return i + 1;
    if (c < ' ') return MANGLED;
    if (c !== '\\') continue;
    const escape = text.slice(i + 1, i + 6);
    if (escape === '') return CUT;
    if (escape[0] === 'u') {
      if (!/^u[0-9a-fA-F]*$/.test(escape)) return MANGLED;
      if (escape.length < 5) return CUT;
      i += 5;
    } else if ('"\\/bfnrt'.includes(escape[0])) i++;
    else return MANGLED;
  }
  return CUT;
}

/** @param {string} text @param {number} at @returns {number} behind a number or a word, CUT or MANGLED */
function endOfAtom(text, at) {
  const end = behind(RUN, text, at);
  const run = text.slice(at, end);
  if (end === text.length && run !== '') return WORDS.some((word) => word.startsWith(run)) || /^-?[0-9.eE+-]*$/.test(run) ? CUT : MANGLED;
  return WORDS.includes(run) || NUMBER.test(run) ? end : MANGLED;
}

/**
 * Whether a text is one JSON object, the beginning of one that was cut off at the end of the text, or neither.
 * @param {string} text
 * @returns {'whole' | 'cut' | 'mangled'}
 */
export function objectState(text) {
  const closers = [];
  let at = behind(SPACE, text, 0);
  let want = 'object';
  for (;;) {
    at = behind(SPACE, text, at);
    if (want === 'end') return at === text.length ? 'whole' : 'mangled';
    if (at === text.length) return 'cut';
    const c = text[at];
    const opens = c === '{' || (c === '[' && want !== 'object');
    if (closers.length > 0 && c === closers.at(-1) && (want === 'first' || want === 'comma')) {
      closers.pop();
      at++;
      want = closers.length === 0 ? 'end' : 'comma';
    } else if (want === 'comma' || want === 'colon') {
      if (c !== (want === 'comma' ? ',' : ':')) return 'mangled';
      at++;
      want = want === 'comma' && closers.at(-1) === '}' ? 'key' : 'value';
    } else if (want === 'key' || (want === 'first' && closers.at(-1) === '}')) {
      at = c === '"' ? endOfString(text, at) : MANGLED;
      want = 'colon';
    } else if (opens) {
      closers.push(c === '{' ? '}' : ']');
      at++;
      want = 'first';
    } else {
      at = want === 'object' ? MANGLED : c === '"' ? endOfString(text, at) : endOfAtom(text, at);
      want = 'comma';
    }
    if (at < 0) return at === CUT ? 'cut' : 'mangled';
  }
}
