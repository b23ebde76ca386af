import { childArgv } from './argv.mjs';
import { Child } from './child.mjs';
import { childEnv, hcExecutable } from './env.mjs';
import { Failure, badRequest } from './failure.mjs';
import { HcClient } from './hc-client.mjs';
import { terminalName } from './names.mjs';
import { retireChild } from './retiring.mjs';
import { readSession } from './session-file.mjs';
import { unsettled } from './settle.mjs';
import { Starter, taken } from './starting.mjs';
import { howEnded } from './terminal.mjs';
import { now } from './time.mjs';
import { waitSettled } from './waiting.mjs';

const ONE_PRESS_MS = 500;

/** Drives agents in terminals of hc. */
export class TerminalSupervisor {
  #env;
  #settings;
  #client;
  #starter;
  #children = new Set();
  #starting = new Set();
  #waits = new Set();
  #closed = false;

  /**
   * @param {{env: NodeJS.ProcessEnv, settings: {pollMs: number, memoryEnv: Record<string, string>}}} options
   */
  constructor({ env, settings }) {
    this.#env = env;
    this.#settings = settings;
    this.#client = new HcClient({ executable: hcExecutable(env), env });
    this.#starter = new Starter(this.#client, env.HC_TERMINAL_ID ?? '');
  }

  /** @param {object} request the parameters of a spawn @param {string} token @returns {Promise<Child>} */
  async spawn(request, token) {
    const name = terminalName(request.runId, request.handle);
    const argv = childArgv(request);
    const env = childEnv(this.#env, this.#settings.memoryEnv, request.env ?? {});
    if (request.cwd.includes('\0')) throw badRequest('the folder holds a NUL');
    const owner = [...this.#children].find((child) => child.holdsName && child.name === name);
    if (owner !== undefined) throw taken(name, `by child '${owner.handle}' of this supervisor`, 'not-sent');
    if (this.#starting.has(name)) throw taken(name, 'by a child that is being started', 'not-sent');
    this.#starting.add(name);
    try {
      const started = await this.#starter.start({ name, argv, env, cwd: request.cwd });
      const child = new Child({ token, handle: request.handle, name, sessionFile: request.sessionFile, ...started });
      this.#children.add(child);
      return child;
    } finally {
      this.#starting.delete(name);
    }
  }

  /** @param {Child} child @param {string} text D10 */
  async steer(child, text) {
    const { turn, undo, sending } = await child.inTurn(async () => {
      const { terminal } = await this.#lookAlive(child);
      if (terminal.status === 'blocked') throw refused('blocked', child, 'waits for an answer to a dialog');
      if (terminal.turn <= child.startTurn && terminal.status !== 'working') {
        throw refused('not-started', child, 'has not begun its first turn');
      }
      const stale = (await readSession(child.sessionFile)).prompt?.key ?? null;
      if (child.retired) throw refused('gone', child, 'was retired');
      return { turn: terminal.turn, undo: child.beginPrompt(terminal.turn, stale), sending: this.#client.send(child.name, text) };
    });
    try {
      const { started } = await sending;
      return { promptTurn: turn, ...(typeof started === 'boolean' ? { started } : {}) };
    } catch (failure) {
      if (failure.known !== 'unknown') undo();
      throw explain(failure, child);
    }
  }

  /** @param {Child} child D10: the stop key, once a turn and moment */
  async abort(child) {
    const { turn } = (await this.#lookAlive(child)).terminal;
    const before = child.press;
    if (before === null || before.turn !== turn || now() - before.at >= ONE_PRESS_MS) {
      child.press = { turn, at: now(), outcome: this.#client.act('interrupt', child.name) };
    }
    const press = child.press;
    try {
      await press.outcome;
    } catch (failure) {
      if (child.press === press) child.press = null;
      throw explain(failure, child);
    }
    return { status: 'interrupted' };
  }

  /** @param {Child} child @param {{timeoutMs: number | null, token: string}} options D8 */
  async wait(child, { timeoutMs, token }) {
    if (this.#closed) return unsettled('aborted by parent');
    const controller = new AbortController();
    const wait = { child, token, controller };
    this.#waits.add(wait);
    try {
      const look = () => this.#client.get(child.name);
      return await waitSettled({ child, look, pollMs: this.#settings.pollMs, timeoutMs, signal: controller.signal });
    } finally {
      this.#waits.delete(wait);
    }
  }

  /** @param {string} token @returns {boolean} whether there was such a wait */
  cancel(token) {
    return token !== '' && this.#endWaits((wait) => wait.token === token, 'aborted by parent');
  }

  /** @param {Child} child one look */
  async status(child) {
    const { terminal } = await this.#look(child);
    return { turn: terminal.turn, status: terminal.status, state: terminal.state, ...howEnded(terminal) };
  }

  /** @param {Child} child D11: two at once share one attempt, and one that removed it is the last */
  retire(child) {
    child.retiring ??= this.#retire(child);
    return child.retiring;
  }

  /** Children go on; everything that is this supervisor's own ends. */
  async shutdown() {
    this.#closed = true;
    this.#endWaits(() => true, 'aborted by parent');
    await this.#client.close();
  }

  async #retire(child) {
    const outcome = await retireChild({ child, client: this.#client, pollMs: this.#settings.pollMs });
    if (!outcome.removed) child.retiring = null;
    if (child.retired) this.#endWaits((wait) => wait.child === child, 'gone');
    return outcome;
  }

  #endWaits(which, reason) {
    const chosen = [...this.#waits].filter(which);
    for (const wait of chosen) wait.controller.abort(reason);
    return chosen.length > 0;
  }

  async #look(child) {
    let seen;
    try {
      seen = await this.#client.get(child.name);
    } catch (failure) {
      throw explain(failure, child);
    }
    if (!child.is(seen)) throw refused('gone', child, 'is not there any more: another terminal has its name');
    return seen;
  }

  async #lookAlive(child) {
    if (child.retired) throw refused('gone', child, 'was retired');
    const seen = await this.#look(child);
    if (child.retired) throw refused('gone', child, 'was retired');
    if (seen.terminal.state === 'finished') throw refused('gone', child, 'has ended');
    return seen;
  }
}

/** @param {string} code @param {Child} child @param {string} what @returns {Failure} */
const refused = (code, child, what) => new Failure(code, `child '${child.handle}' (${child.name}) ${what}`, { child: child.name });

/** @param {Failure} failure @param {Child} child @returns {Failure} in words of this child */
function explain(failure, child) {
  const codes = { no_such_terminal: 'gone', not_live: 'gone', blocked: 'blocked' };
  if (failure.code === 'call-failed' && failure.kind in codes) failure.code = codes[failure.kind];
  return failure.of(child.name);
}
