/**
 * A failure that a caller can act on: a code word, and what is known of the effect.
 */
export class Failure extends Error {
  /**
   * @param {string} code one of the words of the protocol document
   * @param {string} message one sentence for a person
   * @param {{child?: string, known?: string, kind?: string, hint?: string}} [facts]
   */
  constructor(code, message, { child = '', known = 'not-sent', kind = '', hint = '' } = {}) {
    super(message);
    this.name = 'Failure';
    this.code = code;
    this.child = child;
    this.known = known;
    this.kind = kind;
    this.hint = hint;
    /** No core was reached: the call itself was never sent. */
    this.unreached = false;
    /** The core refused the connection: trying again may help. */
    this.refusedLink = false;
  }

  /** @param {string} child @returns {this} the same failure, told of this child */
  of(child) {
    if (this.child === '') this.child = child;
    return this;
  }

  /** @returns {{code: string, child: string, known: string, kind: string, hint: string}} */
  data() {
    return { code: this.code, child: this.child, known: this.known, kind: this.kind, hint: this.hint };
  }
}

/** @param {string} message @returns {Failure} the caller's mistake */
export const badRequest = (message) => new Failure('bad-request', message);
