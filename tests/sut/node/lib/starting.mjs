import { Failure } from './failure.mjs';
import { childLabels } from './names.mjs';
import { sameEntries, sameList } from './terminal.mjs';

const ADOPT_MS = 3_000;

/** Starts terminals for the children of one supervisor. */
export class Starter {
  #client;
  #parentId;
  #parent = null;

  /**
   * @param {import('./hc-client.mjs').HcClient} client
   * @param {string} parentId address of the terminal that the supervisor lives in, or ""
   */
  constructor(client, parentId) {
    this.#client = client;
    this.#parentId = parentId;
  }

  /**
   * @param {{name: string, argv: string[], env: Record<string, string>, cwd: string}} what
   * @returns {Promise<{start: import('./terminal.mjs').Seen, startTurn: number}>}
   */
  async start(what) {
    const parent = await this.#knowParent();
    const params = { ...what, labels: childLabels(parent.labels) };
    if (parent.exists) params.caller = this.#parentId;
    const start = await this.#runOrMakeRoom(params);
    return { start: start.seen, startTurn: start.adopted ? turnBefore(start.seen.terminal) : start.seen.terminal.turn };
  }

  /** D6: the parent's labels, read once; a start goes on without them when they cannot be read. */
  #knowParent() {
    this.#parent ??= this.#readParent().catch((failure) => {
      this.#parent = null;
      throw failure;
    });
    return this.#parent;
  }

  async #readParent() {
    if (this.#parentId === '') return { exists: false, labels: {} };
    try {
      const { terminal } = await this.#client.get(this.#parentId);
      return { exists: true, labels: terminal.labels };
    } catch (failure) {
      if (failure.unreached) throw failure;
      return { exists: failure.kind !== 'no_such_terminal', labels: {} };
    }
  }

  /** A4: a finished terminal makes room for a new one, once. */
  async #runOrMakeRoom(params) {
    try {
      return await this.#run(params);
    } catch (failure) {
      if (failure.kind !== 'name_taken') throw failure;
    }
    const holder = await this.#client.get(params.name).catch((failure) => failure);
    if (holder instanceof Error) throw taken(params.name, `and could not be looked at (${holder.message})`);
    const { address, name, state } = holder.terminal;
    if (state !== 'finished' || name !== params.name) throw taken(params.name, `by terminal ${address} (${state})`);
    try {
      await this.#client.act('rm', address);
    } catch (failure) {
      if (failure.kind !== 'no_such_terminal') throw taken(params.name, `by terminal ${address}, which cannot be removed: ${failure.message}`);
    }
    try {
      return await this.#run(params);
    } catch (failure) {
      throw failure.kind === 'name_taken' ? taken(params.name, 'again, after its holder was removed') : failure;
    }
  }

  /** One terminal.run; what became of it is looked up when no answer came. */
  async #run(params) {
    try {
      return { seen: await this.#client.run(params), adopted: false };
    } catch (failure) {
      if (failure.known !== 'unknown') throw failure;
      const seen = await this.#client.get(params.name, ADOPT_MS).catch(() => null);
      if (seen !== null && isOurs(seen.terminal, params)) return { seen, adopted: true };
      throw new Failure('outcome-unknown', `whether terminal ${params.name} was started is not known: ${failure.message}`, {
        child: params.name,
        known: 'unknown',
        kind: failure.kind,
      });
    }
  }
}

/**
 * The turn that an adopted child began with, as far as a look can tell: one less than it shows when it is at work already.
 * @param {import('./terminal.mjs').Terminal} terminal
 */
export const turnBefore = ({ turn, status }) => (status === null || status === 'idle' ? turn : Math.max(0, turn - 1));

/** @param {import('./terminal.mjs').Terminal} terminal @param {object} params of the run that got no answer */
const isOurs = (terminal, params) =>
  terminal.state === 'running' &&
  terminal.name === params.name &&
  terminal.parent === (params.caller ?? null) &&
  sameList(terminal.argv, params.argv) &&
  sameEntries(terminal.labels, params.labels);

/** @param {string} name @param {string} how @returns {Failure} */
export function taken(name, how, known = 'not-applied') {
  return new Failure('name-taken', `the name ${name} is taken ${how}`, {
    child: name,
    known,
    kind: known === 'not-sent' ? '' : 'name_taken',
    hint: 'retire its holder, or use another handle',
  });
}
