import { mayBePrompt, readRecords } from './records.mjs';
import { isObject } from './frames.mjs';
import { verdictOfText } from './verdict.mjs';

/**
 * @typedef {{role: string, id: any, parentId: any, content: any, stopReason?: string, at: number}} Message
 * @typedef {{at: number, key: string, id: any, message: Message | null}} Prompt
 */

/** A session file, read: its entries, its newest prompt and the answer to it. */
export class Transcript {
  #entries = [];
  #messages = [];
  #takenBack = new Set();
  #session = null;
  /** @type {Prompt | null} */
  prompt = null;
  badLines = 0;

  /** @param {Buffer} bytes */
  constructor(bytes) {
    const { pieces, badLines } = readRecords(bytes);
    this.badLines = badLines;
    pieces.forEach((piece, at) => ('bad' in piece ? this.#bad(piece, at) : this.#entry(piece.entry, at)));
  }

  /** @returns {Message | null} the message that comes last in the file */
  get newest() {
    return this.#messages.at(-1) ?? null;
  }

  /** @returns {boolean} whether a user message stands last, and nothing behind it */
  get unanswered() {
    return this.prompt?.message != null && this.#entries.at(-1)?.at === this.prompt.at;
  }

  /**
   * D9: the answer to the newest prompt, and what it says.
   * @param {string | null} [stale] key of a prompt whose answer no longer counts
   * @returns {object} the result of a collect
   */
  collect(stale = null) {
    const { text, reason } = this.#answer(stale);
    const said = reason === null ? verdictOfText(text) : { verdict: 'unknown', reason };
    const stopReason = this.newest?.stopReason;
    return { text, badLines: this.badLines, ...(typeof stopReason === 'string' ? { stopReason } : {}), ...said };
  }

  #answer(stale) {
    const none = (reason) => ({ text: '', reason });
    if (this.prompt === null) return none('the session has no prompt');
    if (stale !== null && this.prompt.key === stale) return none('the newest prompt was answered, or asked, before the last steer');
    if (this.prompt.message === null) return none('a line that cannot be read may be a newer prompt');
    if (this.#takenBack.has(this.prompt.id)) return none('the newest prompt was taken back');
    const { branch, forked } = this.#branch();
    const answer = this.#messages.filter((m) => m.role === 'assistant' && m.at > this.prompt.at && branch.has(m.id)).at(-1);
    if (answer === undefined || answer !== this.newest) return none('the newest prompt has no answer');
    if (this.#takenBack.has(answer.id)) return none('the answer was taken back');
    if (parts(answer).some((part) => part.type === 'toolCall')) return none('the newest message asks for a tool');
    const text = textOf(answer);
    if (forked) return { text, reason: 'the session was forked after the newest prompt' };
    if (answer.stopReason !== 'stop') return { text, reason: `the answer ended with ${answer.stopReason ?? 'no stop reason'}` };
    return { text, reason: null };
  }

  /** What descends from the newest prompt, and whether all that came behind it is one line of descent. */
  #branch() {
    const branch = new Set([this.prompt.id]);
    const parents = new Set();
    let forked = false;
    for (const { at, id, parentId } of this.#entries) {
      if (at <= this.prompt.at) continue;
      if (!branch.has(parentId) || parents.has(parentId) || branch.has(id)) forked = true;
      if (!branch.has(parentId)) continue;
      parents.add(parentId);
      branch.add(id);
    }
    return { branch, forked };
  }

  #entry(entry, at) {
    if (entry.type === 'session') {
      if (this.#session !== null && entry.id !== this.#session) this.#forget();
      this.#session = entry.id ?? null;
      return;
    }
    if (entry.type === 'context_edit' && entry.targetId !== undefined) this.#takenBack.add(entry.targetId);
    const { id, parentId } = entry;
    if (id !== undefined && id !== null) this.#entries.push({ at, id, parentId: parentId ?? null });
    if (entry.type !== 'message') return;
    if (!isObject(entry.message) || typeof entry.message.role !== 'string') return this.#ask(at, null, null);
    const { role, content, stopReason } = entry.message;
    if (!['user', 'assistant', 'toolResult'].includes(role)) return;
    const message = { role, id, parentId, content, stopReason, at };
    this.#messages.push(message);
    if (role === 'user') this.#ask(at, id ?? null, message);
  }

  #ask(at, id, message) {
    this.prompt = { at, id, key: JSON.stringify([this.#session, id ?? at]), message };
  }

  #bad(stretch, at) {
    if (mayBePrompt(stretch)) this.#ask(at, null, null);
  }

  #forget() {
    this.#entries = [];
    this.#messages = [];
    this.#takenBack.clear();
    this.prompt = null;
  }
}

/** @param {Message} message @returns {Record<string, any>[]} */
function parts(message) {
  return Array.isArray(message.content) ? message.content.filter(isObject) : [];
}

/** @param {Message} message @returns {string} */
function textOf(message) {
  if (typeof message.content === 'string') return message.content;
  return parts(message)
    .filter((part) => part.type === 'text' && typeof part.text === 'string')
    .map((part) => part.text)
    .join('');
}
