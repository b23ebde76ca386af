import { Bridge, CallError } from './bridge.mjs';
import { Failure } from './failure.mjs';
import { normalKind } from './frames.mjs';
import { readTerminal } from './terminal.mjs';
import { now, sleep } from './time.mjs';

const GENERATION = 1;
const CALL_MS = 10_000;
const SEND_MS = 90_000;
const CONNECT_AGAIN_MS = 2_000;
const CONNECT_REST_MS = 100;

/** Kinds by which the core says that it and this client do not understand each other. */
const OTHER_PEER = new Set(['other_generation', 'protocol_mismatch']);

/** Every method that this client may use, and whether it changes something. */
const METHODS = Object.freeze({
  hello: false,
  'terminal.get': false,
  'terminal.run': true,
  'terminal.send': true,
  'terminal.interrupt': true,
  'terminal.kill': true,
  'terminal.rm': true,
});

/** Speaks to the core over one bridge, and starts the next one when it was lost. */
export class HcClient {
  #executable;
  #env;
  #bridge = null;
  #bridges = new Set();
  #ids = 0;
  #connecting = null;
  #closing = new AbortController();
  #closed = null;

  /** @param {{executable: string, env: NodeJS.ProcessEnv}} options */
  constructor({ executable, env }) {
    this.#executable = executable;
    this.#env = env;
  }

  /**
   * @param {string} terminal name or address
   * @returns {Promise<import('./terminal.mjs').Seen>}
   */
  get(terminal, deadlineMs = CALL_MS) {
    return this.#terminal('terminal.get', { terminal }, deadlineMs);
  }

  /** @param {object} params of terminal.run @returns {Promise<import('./terminal.mjs').Seen>} */
  run(params) {
    return this.#terminal('terminal.run', params, CALL_MS);
  }

  /** @param {string} terminal @param {string} text @returns {Promise<object>} */
  send(terminal, text) {
    return this.#call('terminal.send', { terminal, text }, SEND_MS);
  }

  /**
   * @param {'interrupt' | 'kill' | 'rm'} what
   * @param {string} terminal
   * @returns {Promise<object>}
   */
  act(what, terminal, deadlineMs = CALL_MS) {
    return this.#call(`terminal.${what}`, { terminal }, deadlineMs);
  }

  /** End every bridge that is left. May come twice. */
  close() {
    this.#closed ??= (async () => {
      this.#closing.abort();
      await Promise.all([...this.#bridges].map((bridge) => bridge.close('the supervisor was shut down')));
      await this.#connecting?.catch(() => {});
    })();
    return this.#closed;
  }

  async #terminal(method, params, deadlineMs) {
    const link = await this.#link();
    const result = await this.#ask(link, method, params, deadlineMs);
    const terminal = readTerminal(result);
    if (terminal !== null) return { terminal, coreId: link.coreId };
    throw new Failure('protocol', `${method}: the core answered with something that is no terminal`, {
      known: METHODS[method] ? 'unknown' : 'not-sent',
    });
  }

  async #call(method, params, deadlineMs) {
    return this.#ask(await this.#link(), method, params, deadlineMs);
  }

  async #ask(link, method, params, deadlineMs) {
    if (!Object.hasOwn(METHODS, method)) throw new Failure('bad-request', `${method} is not a method of this client`);
    try {
      return await link.request(method, params, deadlineMs);
    } catch (error) {
      throw error instanceof CallError ? translate(method, error) : error;
    }
  }

  #link() {
    if (this.#closing.signal.aborted) {
      const failure = new Failure('closed', 'the supervisor was shut down');
      failure.unreached = true;
      return Promise.reject(failure);
    }
    if (this.#bridge?.alive) return Promise.resolve(this.#bridge);
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = null;
    });
    return this.#connecting;
  }

  #newBridge() {
    try {
      return new Bridge(this.#executable, this.#env, () => ++this.#ids);
    } catch (error) {
      const failure = new Failure('host-unreachable', `${this.#executable} could not be started: ${error.message}`);
      failure.unreached = true;
      throw failure;
    }
  }

  /** A bridge serves others only when its hello was answered. */
  async #connect() {
    const end = now() + CONNECT_AGAIN_MS;
    for (;;) {
      const bridge = this.#newBridge();
      this.#bridges.add(bridge);
      try {
        const hello = await this.#ask(bridge, 'hello', { generation: GENERATION }, CALL_MS);
        if (hello.generation !== GENERATION) {
          throw new Failure('protocol', `the core speaks generation ${hello.generation}, this supervisor ${GENERATION}`);
        }
        bridge.coreId = String(hello.core_id ?? '');
        this.#bridge = bridge;
        return bridge;
      } catch (failure) {
        await bridge.close();
        this.#bridges.delete(bridge);
        failure.unreached = true;
        if (!failure.refusedLink || now() + CONNECT_REST_MS >= end || this.#closing.signal.aborted) throw failure;
        await sleep(CONNECT_REST_MS, this.#closing.signal);
        if (this.#closing.signal.aborted) throw failure;
      }
    }
  }
}

/**
 * @param {string} method
 * @param {CallError} error
 * @returns {Failure}
 */
function translate(method, error) {
  const changes = METHODS[method];
  if (error.reason === 'refused' || error.reason === 'orphan') {
    const data = error.error?.data ?? {};
    const kind = normalKind(data.kind);
    const known = !changes ? 'not-sent' : error.reason === 'refused' ? 'not-applied' : 'unknown';
    const hint = typeof data.hint === 'string' ? data.hint : '';
    const facts = { known, kind, hint };
    if (OTHER_PEER.has(kind)) return new Failure('protocol', `${method}: the core speaks another generation: ${error.message}`, facts);
    return new Failure(error.code || 'call-failed', `${method}: ${error.message}`, facts);
  }
  if (changes) {
    return new Failure('outcome-unknown', `${method} got no answer, it may have happened: ${error.message}`, { known: 'unknown' });
  }
  if (error.reason === 'timeout') return new Failure('call-timeout', error.message);
  const failure = new Failure(error.reason === 'broken' ? 'protocol' : error.code, `${method}: ${error.message}`);
  failure.refusedLink = method === 'hello' && error.code === 'host-unreachable' && error.exitCode === 1;
  return failure;
}
