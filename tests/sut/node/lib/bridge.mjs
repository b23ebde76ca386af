import { spawn } from 'node:child_process';
import { LineSplitter } from './lines.mjs';
import { beginsLikeJson, readFrame } from './frames.mjs';

const LONGEST_LINE = 16 * 1024 * 1024;
/** So many lines of noise, and nothing between them, are no core. */
const NOISE_LINES = 10;
const STDERR_KEPT = 2048;
/** So long after its first line of noise, a link without any message is no core. */
const NOISE_MS = 2_500;
/** What the link said last may still be in the pipe when its process has ended. */
const DRAIN_MS = 300;
/** A process that closed its output may be about to end, which tells more. */
const EXIT_MS = 600;
const GRACE_MS = 400;

/**
 * A call that got no result. `reason`: refused (the core said no), orphan (an error without an id), timeout, lost (the
 * link ended), broken (an answer that is none). `code` says what kind of loss it was.
 */
export class CallError extends Error {
  /** @param {string} reason @param {string} message @param {object} [facts] */
  constructor(reason, message, facts = {}) {
    super(message);
    this.reason = reason;
    this.code = facts.code ?? '';
    this.error = facts.error ?? null;
    this.exitCode = facts.exitCode ?? null;
  }
}

/** One process `hc connect` and the calls that are open on it. */
export class Bridge {
  #process;
  #splitter = new LineSplitter(LONGEST_LINE);
  #open = new Map();
  #nextId;
  #stderr = '';
  #noise = 0;
  #noiseTimer = null;
  /** It brought a message, of whatever kind. */
  #spoke = false;
  #loss = null;
  #exit = null;
  #exited;
  #closing = null;
  /** What hello said of the core, once it was answered. */
  coreId = '';

  /**
   * @param {string} executable
   * @param {NodeJS.ProcessEnv} env
   * @param {() => number} nextId ids are used once, whatever bridge they go over
   */
  constructor(executable, env, nextId) {
    this.#nextId = nextId;
    this.#process = spawn(executable, ['connect'], { env, stdio: 'pipe', detached: true });
    const { stdin, stdout, stderr } = this.#process;
    this.#exited = new Promise((resolve) => {
      this.#process.once('exit', (code, signal) => {
        this.#exit = { code, signal };
        resolve();
      });
      this.#process.once('error', (error) => {
        if (this.#process.pid !== undefined) return;
        this.#exit = { code: null, signal: null };
        resolve();
        this.#lose(new CallError('lost', `${executable} could not be started: ${error.message}`, { code: 'host-unreachable' }));
      });
    });
    for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {});
    stdout.on('data', (chunk) => this.#take(chunk));
    stderr.on('data', (chunk) => {
      this.#stderr = (this.#stderr + chunk.toString('utf8')).slice(-STDERR_KEPT);
    });
    this.#process.once('close', () => this.#over());
    this.#process.once('exit', () => setTimeout(() => this.#over(), DRAIN_MS));
    stdout.once('end', () => setTimeout(() => this.#over(), EXIT_MS));
  }

  /** @returns {boolean} */
  get alive() {
    return this.#loss === null;
  }

  /**
   * @param {string} method
   * @param {object} params
   * @param {number} deadlineMs
   * @returns {Promise<object>} the result; fails with a CallError
   */
  request(method, params, deadlineMs) {
    if (this.#loss !== null) return Promise.reject(this.#loss);
    const id = this.#nextId();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#open.delete(id);
        reject(this.#late(method, deadlineMs));
      }, deadlineMs);
      const settle = (how) => (value) => {
        clearTimeout(timer);
        this.#open.delete(id);
        how(value);
      };
      this.#open.set(id, { resolve: settle(resolve), reject: settle(reject) });
      this.#process.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  }

  /** End the process: end of input, a grace, SIGTERM, SIGKILL. May come twice. */
  close(message = 'the link was closed') {
    this.#lose(new CallError('lost', message, { code: 'host-unreachable' }));
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end() {
    this.#process.stdin.end();
    for (const signal of ['SIGTERM', 'SIGKILL']) {
      if (await this.#hasExited()) break;
      this.#signal(signal);
    }
    await this.#hasExited();
    this.#signal('SIGKILL');
    this.#process.stdout.destroy();
    this.#process.stderr.destroy();
  }

  async #hasExited() {
    let timer;
    const grace = new Promise((resolve) => {
      timer = setTimeout(resolve, GRACE_MS);
    });
    await Promise.race([this.#exited, grace]);
    clearTimeout(timer);
    return this.#exit !== null;
  }

  /** To the whole group, so that nothing that a wrapper started is left. */
  #signal(signal) {
    if (this.#process.pid === undefined) return;
    try {
      process.kill(-this.#process.pid, signal);
    } catch {
      // nobody is left in that group
    }
  }

  #late(method, deadlineMs) {
    if (!this.#spoke && this.#noise > 0) {
      return new CallError('lost', `${method}: nothing but noise came in ${deadlineMs} ms`, { code: 'protocol' });
    }
    return new CallError('timeout', `${method} got no answer within ${deadlineMs} ms`);
  }

  #take(chunk) {
    try {
      for (const line of this.#splitter.push(chunk)) {
        if (this.#loss !== null) return;
        this.#hear(readFrame(line), line);
      }
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.#break(`the core sent a line that is longer than ${LONGEST_LINE} bytes (${error.message})`);
    }
  }

  #hear(frame, line) {
    if (frame.type === 'noise') {
      this.#noise++;
      const sample = JSON.stringify(line.subarray(0, 80).toString('utf8'));
      const giveUp = () => this.#break(`nothing but noise came from the core: ${this.#noise} lines, such as ${sample}`);
      if (this.#noise >= NOISE_LINES) giveUp();
      else if (!this.#spoke) this.#noiseTimer ??= setTimeout(giveUp, NOISE_MS);
      return;
    }
    this.#spoke = true;
    this.#noise = 0;
    clearTimeout(this.#noiseTimer);
    if (frame.type === 'orphan') this.#orphan(frame.error);
    const call = frame.type === 'answer' ? this.#open.get(frame.id) : undefined;
    if (call === undefined) return;
    if (frame.broken) call.reject(new CallError('broken', 'the core sent an answer with neither a result nor an error'));
    else if (frame.error) call.reject(new CallError('refused', String(frame.error.message ?? 'refused'), { error: frame.error }));
    else call.resolve(frame.result);
  }

  /** An error that names no call fails all; with several open, nobody knows whose it is. */
  #orphan(error) {
    const code = this.#open.size === 1 ? '' : 'protocol';
    const failure = new CallError('orphan', String(error.message ?? 'an error without an id'), { error, code });
    for (const call of [...this.#open.values()]) call.reject(failure);
  }

  #break(message) {
    this.#lose(new CallError('lost', message, { code: 'protocol' }));
    void this.close();
  }

  /** The process has ended, or it will say nothing more. */
  #over() {
    if (this.#loss !== null) return;
    const how = this.#how();
    const last = this.#splitter.rest();
    const frame = last.length > 0 ? readFrame(last) : null;
    if (frame?.type === 'noise' && beginsLikeJson(last)) {
      this.#lose(new CallError('lost', `the link ended inside a frame: ${how}`, { code: 'protocol' }));
    } else if (frame !== null) this.#hear(frame, last);
    if (!this.#spoke && this.#noise > 0) {
      this.#lose(new CallError('lost', `nothing but noise came from hc connect: ${how}`, { code: 'protocol' }));
    } else this.#lose(new CallError('lost', `hc connect ended: ${how}`, { code: 'host-unreachable', exitCode: this.#exit?.code }));
    void this.close();
  }

  #how() {
    if (this.#exit === null) return 'it closed its output';
    const { code, signal } = this.#exit;
    const words = this.#stderr.trim().split('\n').slice(-3).join(' / ').slice(-400);
    return `${signal ?? `exit code ${code}`}${words === '' ? '' : ` (${words})`}`;
  }

  #lose(loss) {
    if (this.#loss !== null) return;
    this.#loss = loss;
    clearTimeout(this.#noiseTimer);
    for (const call of [...this.#open.values()]) call.reject(loss);
  }
}
