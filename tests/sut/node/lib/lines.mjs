/**
 * Cuts a stream of bytes at 0A and nowhere else.
 */
export class LineSplitter {
  #parts = [];
  #length = 0;
  #limit;

  /** @param {number} [limit] bytes that a line may have */
  constructor(limit = Infinity) {
    this.#limit = limit;
  }

  /** @returns {Buffer} the line that has begun and not ended */
  rest() {
    return Buffer.concat(this.#parts, this.#length);
  }

  /**
   * @param {Buffer} chunk
   * @returns {Generator<Buffer>} the lines that are whole now, without their line feed
   */
  *push(chunk) {
    let from = 0;
    for (;;) {
      const at = chunk.indexOf(0x0a, from);
      const piece = chunk.subarray(from, at < 0 ? chunk.length : at);
      if (this.#length + piece.length > this.#limit) throw new RangeError(`a line is longer than ${this.#limit} bytes`);
      if (piece.length > 0) {
        this.#parts.push(piece);
        this.#length += piece.length;
      }
      if (at < 0) return;
      const line = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts, this.#length);
      this.#parts = [];
      this.#length = 0;
      from = at + 1;
      yield line;
    }
  }
}
