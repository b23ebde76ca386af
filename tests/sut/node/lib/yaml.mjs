import { YamlError, findKey, flowClosed, quotedEnd, readFlow, stripComment, takeProperties, unquote, plainScalar } from './yaml-inline.mjs';

/**
 * As much of YAML as a card's front matter needs: block and flow collections, scalars of every style, anchors, tags.
 * @typedef {{scalar: string | null} | {entries: [Node, Node][]} | {items: Node[]}} Node
 */

const BLOCK_SCALAR = /^[|>][+-]?[1-9]?[+-]?(?:\s+#.*)?$/;
const SEQUENCE = /^-(?=\s|$)/;

class Parser {
  #lines;
  #at = 0;
  #anchors = new Map();

  constructor(text) {
    this.#lines = text.split('\n');
  }

  /** @returns {Node} */
  document() {
    const node = this.#node(0);
    if (this.#peek() !== null) throw new YamlError(`line ${this.#at + 1} belongs to nothing`);
    return node;
  }

  /** The next line that says something: its indent and content. */
  #peek() {
    for (; this.#at < this.#lines.length; this.#at++) {
      const line = this.#lines[this.#at];
      const content = line.trimStart();
      if (content.trim() === '' || content.startsWith('#')) continue;
      const blank = line.slice(0, line.length - content.length);
      if (blank.includes('\t')) throw new YamlError(`line ${this.#at + 1} is indented with a tab`);
      return { indent: blank.length, content: content.trimEnd() };
    }
    return null;
  }

  /** @param {number} least indent @returns {Node} */
  #node(least) {
    const next = this.#peek();
    if (next === null || next.indent < least) return { scalar: null };
    if (SEQUENCE.test(next.content)) return this.#sequence(next.indent);
    if (next.content.startsWith('? ') || findKey(next.content, this.#anchors) !== null) return this.#mapping(next.indent);
    this.#at++;
    return this.#inline(next.content, least - 1);
  }

  #sequence(indent) {
    const items = [];
    for (let next = this.#peek(); next !== null && next.indent === indent && SEQUENCE.test(next.content); next = this.#peek()) {
      items.push(this.#nested(next, 1, indent));
    }
    return this.#ended({ items }, indent);
  }

  /** What follows a mark such as "- " on the same line, or below it. */
  #nested({ content }, mark, indent) {
    const rest = content.slice(mark);
    const inner = rest.trimStart();
    if (inner === '' || inner.startsWith('#')) {
      this.#at++;
      return this.#node(indent + 1);
    }
    const { rest: bare } = takeProperties(inner);
    if (SEQUENCE.test(inner) || inner.startsWith('? ') || findKey(inner, this.#anchors) !== null) {
      this.#lines[this.#at] = ' '.repeat(indent + mark + rest.length - inner.length) + inner;
      return this.#node(indent + 1);
    }
    this.#at++;
    return bare === '' ? this.#node(indent + 1) : this.#inline(inner, indent);
  }

  #mapping(indent) {
    const entries = [];
    for (let next = this.#peek(); next !== null && next.indent === indent; next = this.#peek()) {
      if (next.content.startsWith('? ')) {
        const key = this.#nested(next, 1, indent);
        const colon = this.#peek();
        const valued = colon !== null && colon.indent === indent && /^:(?=\s|$)/.test(colon.content);
        entries.push([key, valued ? this.#nested(colon, 1, indent) : { scalar: null }]);
        continue;
      }
      const found = findKey(next.content, this.#anchors);
      if (found === null) throw new YamlError(`line ${this.#at + 1} is no key with a value`);
      this.#at++;
      entries.push([found.key, this.#value(found.rest, indent)]);
    }
    return this.#ended({ entries }, indent);
  }

  #ended(node, indent) {
    const next = this.#peek();
    if (next !== null && next.indent > indent) throw new YamlError(`line ${this.#at + 1} is indented too far`);
    return node;
  }

  #value(text, indent) {
    const { rest } = takeProperties(text);
    if (rest === '' || rest.startsWith('#')) {
      const next = this.#peek();
      if (next !== null && next.indent === indent && SEQUENCE.test(next.content)) return this.#sequence(indent);
      return this.#node(indent + 1);
    }
    return this.#inline(text, indent);
  }

  /** A value that begins on a line that was taken already. */
  #inline(text, indent) {
    const { rest, anchor } = takeProperties(text);
    const node = this.#bare(rest, indent);
    if (anchor !== null) this.#anchors.set(anchor, node);
    return node;
  }

  #bare(rest, indent) {
    if (BLOCK_SCALAR.test(rest)) return this.#blockScalar(indent);
    if (rest.startsWith('*')) return this.#anchors.get(stripComment(rest).slice(1).trim()) ?? { scalar: null };
    if (rest[0] === '"' || rest[0] === "'") {
      const whole = this.#gather(rest, indent, (text) => quotedEnd(text, 0) > 0);
      const end = quotedEnd(whole, 0);
      if (end < 0) throw new YamlError('a quoted text has no end');
      if (stripComment(whole.slice(end)).trim() !== '') throw new YamlError('something stands behind a quoted text');
      return { scalar: unquote(whole.slice(0, end)) };
    }
    if (rest[0] === '[' || rest[0] === '{') {
      return readFlow(this.#gather(rest, -1, flowClosed), this.#anchors);
    }
    return this.#plain(rest, indent);
  }

  #gather(first, indent, whole) {
    let text = first;
    while (!whole(text) && this.#at < this.#lines.length) {
      const line = this.#lines[this.#at];
      if (line.trim() !== '' && line.length - line.trimStart().length <= indent) break;
      text += `\n${line}`;
      this.#at++;
    }
    return text;
  }

  #plain(rest, indent) {
    let scalar = plainScalar(rest);
    for (;;) {
      const commented = stripComment(this.#lines[this.#at - 1]) !== this.#lines[this.#at - 1].trimEnd();
      const next = this.#peek();
      if (next === null || next.indent <= indent || commented) return { scalar };
      this.#at++;
      scalar += ` ${plainScalar(next.content, true)}`;
    }
  }

  #blockScalar(indent) {
    const kept = [];
    for (; this.#at < this.#lines.length; this.#at++) {
      const line = this.#lines[this.#at];
      if (line.trim() !== '' && line.length - line.trimStart().length <= indent) break;
      kept.push(line.trim());
    }
    return { scalar: kept.join('\n').trim() };
  }
}

/**
 * @param {string} text
 * @returns {Node}
 */
export const parseYaml = (text) => new Parser(text).document();
