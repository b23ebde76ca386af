const WORDS = 'accept|reject|unknown';
const RUN = '([*_]{0,3})';
const LINE = new RegExp(`^ {0,3}${RUN}verdict${RUN}[ \\t]*:${RUN}([ \\t]*)${RUN}(${WORDS})${RUN}[.!]?${RUN}[ \\t]*$`, 'i');
const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;

/**
 * Whether the marks of emphasis close what they opened, in order.
 * @param {[('open' | 'close'), string][]} runs
 */
function balanced(runs) {
  const stack = [];
  for (const [side, marks] of runs) {
    for (const mark of marks) {
      if (side === 'open') stack.push(mark);
      else if (stack.pop() !== mark) return false;
    }
  }
  return stack.length === 0;
}

/**
 * @param {string} line
 * @returns {string | null} the verdict that this line speaks
 */
export function verdictOfLine(line) {
  const found = LINE.exec(line);
  if (found === null) return null;
  const [, before, after, colon, blank, opening, word, closing, end] = found;
  const rest = [['close', closing], ['close', end]];
  const head = [['open', before], ['close', after]];
  const closed = balanced([...head, ['close', colon], ['open', opening], ...rest]);
  const opened = blank === '' && balanced([...head, ['open', colon + opening], ...rest]);
  return closed || opened ? word.toLowerCase() : null;
}

/**
 * The verdict of an answer: the one that all its verdict lines agree on, those in fenced code left out.
 * @param {string} text
 * @returns {{verdict: 'accept' | 'reject' | 'unknown', reason?: string}}
 */
export function verdictOfText(text) {
  const said = new Set();
  let fence = null;
  for (const line of text.split(/\r\n|\n|\r/)) {
    const mark = FENCE.exec(line);
    if (fence !== null) {
      const closes = mark !== null && mark[1][0] === fence[0] && mark[1].length >= fence.length && mark[2].trim() === '';
      if (closes) fence = null;
    } else if (mark !== null && !(mark[1][0] === '`' && mark[2].includes('`'))) {
      fence = mark[1];
    } else {
      const verdict = verdictOfLine(line);
      if (verdict !== null) said.add(verdict);
    }
  }
  if (said.size === 1) return said.has('unknown') ? { verdict: 'unknown', reason: 'the answer says unknown' } : { verdict: [...said][0] };
  return { verdict: 'unknown', reason: said.size === 0 ? 'the answer has no verdict line' : 'verdict lines contradict each other' };
}
