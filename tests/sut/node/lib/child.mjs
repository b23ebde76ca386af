import { sameIncarnation } from './terminal.mjs';

/** What the supervisor remembers of one child in a terminal. */
export class Child {
  /** The prompts that count, oldest first: the turn remembered before each, and the prompt that was newest in the file then. */
  #prompts;
  #turnstile = Promise.resolve();
  /** It was retired: it takes nothing more. */
  retired = false;
  /** It is known that its terminal is not there any more. */
  lost = false;
  /** Its end was seen. */
  finished = false;
  /** The retire that is under way, or the one that removed it. */
  retiring = null;
  /** The newest press of the stop key: its turn, its moment, its outcome. */
  press = null;

  /**
   * @param {{token: string, handle: string, name: string, sessionFile: string, start: import('./terminal.mjs').Seen,
   *   startTurn: number}} facts
   */
  constructor({ token, handle, name, sessionFile, start, startTurn }) {
    this.mode = 'terminal';
    this.token = token;
    this.handle = handle;
    this.name = name;
    this.sessionFile = sessionFile;
    this.startTurn = startTurn;
    this.start = start;
    this.#prompts = [{ turn: startTurn, stale: null }];
  }

  /** @returns {boolean} whether the name is still its own: a finished terminal is, until it was retired */
  get holdsName() {
    return !this.retired && !this.lost;
  }

  /** @returns {number} only a later turn settles */
  get promptTurn() {
    return this.#prompts.at(-1).turn;
  }

  /** @returns {string | null} the prompt whose answer does not count any more */
  get stalePrompt() {
    return this.#prompts.at(-1).stale;
  }

  /**
   * A prompt is about to be sent.
   * @param {number} turn @param {string | null} stale
   * @returns {() => void} call it when the core refused: then it was no prompt
   */
  beginPrompt(turn, stale) {
    const prompt = { turn, stale };
    this.#prompts.push(prompt);
    return () => {
      this.#prompts = this.#prompts.filter((other) => other !== prompt);
    };
  }

  /** @param {import('./terminal.mjs').Seen} seen @returns {boolean} whether this is still the terminal that was started */
  is(seen) {
    const same = sameIncarnation(this.start, seen);
    if (same && seen.terminal.state === 'finished') this.finished = true;
    if (!same) this.lost = true;
    return same;
  }

  /**
   * Run one after the other what must not be mixed up.
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  inTurn(work) {
    const result = this.#turnstile.then(work);
    this.#turnstile = result.then(
      () => {},
      () => {},
    );
    return result;
  }
}
