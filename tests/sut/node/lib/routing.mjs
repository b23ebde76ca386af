import { Failure, badRequest } from './failure.mjs';
import { terminalHostAvailable } from './env.mjs';
import { collectVerdict } from './session-file.mjs';
import { InprocessSupervisor } from './inprocess-supervisor.mjs';
import { TerminalSupervisor } from './terminal-supervisor.mjs';

const CENTURION = 'centurion';

/**
 * D1, D2, I5: which backend an agent gets.
 * @param {{agent: string, worktree: boolean, env: Record<string, string | undefined>}} facts
 * @returns {'inprocess' | 'rpc' | 'terminal'}
 */
export function arbitrate({ agent, worktree, env }) {
  if (!worktree) return 'inprocess';
  return agent === CENTURION && terminalHostAvailable(env) ? 'terminal' : 'rpc';
}

/**
 * I6: what must not start, whatever was asked for.
 * @param {{agent: string, worktree: boolean}} request
 * @param {string} mode
 */
export function guard({ agent, worktree }, mode) {
  if (worktree && agent !== CENTURION) {
    throw new Failure('worktree-refused', `only a centurion can hold a worktree, and this is a ${agent}`);
  }
  if (worktree && mode === 'inprocess') throw new Failure('worktree-refused', 'an agent in mode inprocess cannot hold a worktree');
  if (mode === 'terminal' && agent !== CENTURION) throw badRequest(`only a centurion runs in mode terminal, and this is a ${agent}`);
  if (mode === 'terminal' && !worktree) throw badRequest('only an agent with a worktree runs in mode terminal');
}

/** One supervisor: it chooses the backend of each child and hands every later call to it. */
export class RoutingSupervisor {
  #env;
  #backends;
  #children = new Map();
  #tokens = 0;
  #closed = false;

  /** @param {{env: NodeJS.ProcessEnv, settings: {pollMs: number, memoryEnv: Record<string, string>}}} options */
  constructor(options) {
    this.#env = options.env;
    this.#backends = new Map([
      ['terminal', new TerminalSupervisor(options)],
      ['inprocess', new InprocessSupervisor()],
    ]);
  }

  /** @param {object} request the parameters of a spawn, checked */
  async spawn(request) {
    if (this.#closed) throw new Failure('closed', 'the supervisor was shut down');
    const mode = request.mode ?? arbitrate({ ...request, env: this.#env });
    guard(request, mode);
    const backend = this.#backends.get(mode);
    if (backend === undefined) throw new Failure('mode-unavailable', `there is no backend for mode ${mode}`);
    const child = await backend.spawn(request, `child-${++this.#tokens}`);
    this.#children.set(child.token, child);
    const { token, name, startTurn } = child;
    return { mode, child: token, ...(name === undefined ? {} : { name, promptTurn: startTurn }) };
  }

  /** @param {string} token @param {string} text */
  steer(token, text) {
    return this.#serve(token, (backend, child) => backend.steer(child, text));
  }

  /** @param {string} token */
  abort(token) {
    return this.#serve(token, (backend, child) => backend.abort(child));
  }

  /** @param {string} token */
  status(token) {
    return this.#serve(token, (backend, child) => backend.status(child));
  }

  /** @param {string} token @param {{timeoutMs: number | null, token: string}} options */
  wait(token, options) {
    return this.#serve(token, (backend, child) => backend.wait(child, options));
  }

  /** @param {string} token */
  retire(token) {
    return this.#serve(token, (backend, child) => backend.retire(child));
  }

  /** @param {string} token D9 */
  collect(token) {
    return this.#serve(token, (backend, child) => collectVerdict(child.sessionFile, () => child.stalePrompt));
  }

  /** @param {string} token @returns {boolean} */
  cancel(token) {
    return [...this.#backends.values()].map((backend) => backend.cancel(token)).includes(true);
  }

  /** D10, D12: nothing is claimed. */
  capabilities() {
    return { promptDisposition: false, events: false };
  }

  async shutdown() {
    this.#closed = true;
    await Promise.all([...this.#backends.values()].map((backend) => backend.shutdown()));
  }

  async #serve(token, work) {
    const child = this.#children.get(token);
    if (child === undefined) throw badRequest(`there is no child ${JSON.stringify(token)}`);
    return work(this.#backends.get(child.mode), child);
  }
}
