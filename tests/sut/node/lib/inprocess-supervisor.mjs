import { Failure } from './failure.mjs';

/** The backend of agents that run inside the supervisor. Its agents have nothing to do, so each has ended once it was started. */
export class InprocessSupervisor {
  /** @param {object} request @param {string} token */
  async spawn(request, token) {
    return { mode: 'inprocess', token, handle: request.handle, sessionFile: request.sessionFile, stalePrompt: null };
  }

  async steer(child) {
    throw new Failure('gone', `child '${child.handle}' has ended`, { child: child.handle });
  }

  async abort(child) {
    throw new Failure('gone', `child '${child.handle}' has ended`, { child: child.handle });
  }

  async status() {
    return { turn: 0, status: null, state: 'finished' };
  }

  async wait() {
    return { settled: true, abnormal: false };
  }

  async retire() {
    return { ended: true, removed: true, note: null };
  }

  cancel() {
    return false;
  }

  async shutdown() {}
}
