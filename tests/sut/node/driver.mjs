// The loop around the supervisor: a line in, a call, a line out. See the protocol document.
import { loadCard } from './lib/cards.mjs';
import { terminalHostAvailable } from './lib/env.mjs';
import { Failure, badRequest } from './lib/failure.mjs';
import { isObject } from './lib/frames.mjs';
import { LineSplitter } from './lib/lines.mjs';
import { take, takeSpawn } from './lib/requests.mjs';
import { RoutingSupervisor, arbitrate } from './lib/routing.mjs';

const PROTOCOL_VERSION = 1;
const FEATURES = ['terminal', 'verdict', 'host', 'arbitration', 'cards', 'capabilities', 'cancel', 'inprocess', 'memory'];
const DEFAULT_POLL_MS = 250;
const DEFAULT_WAIT_MS = 5_000;
const LEAVE_MS = 1_800;

/**
 * @param {(line: string) => void} write
 * @returns {{hear: (line: Buffer) => Promise<void>, leave: () => Promise<void>}}
 */
function createDriver(write) {
  let supervisor = null;

  const child = (params) => take(params, { child: 'text' }).child;
  const mine = () => {
    if (supervisor === null) throw badRequest('initialize has to come first');
    return supervisor;
  };
  const calls = {
    initialize(params) {
      if (supervisor !== null) throw badRequest('initialize comes once');
      const settings = isObject(params.settings) ? params.settings : {};
      const { pollMs = DEFAULT_POLL_MS, memoryEnv = {} } = take(settings, { pollMs: 'number?', memoryEnv: 'env?' });
      supervisor = new RoutingSupervisor({ env: process.env, settings: { pollMs, memoryEnv } });
      return { protocolVersion: PROTOCOL_VERSION, name: 'node terminal supervisor', version: '1.0.0', language: 'JavaScript', features: FEATURES };
    },
    'host.available': (params) => ({ available: terminalHostAvailable(take(params, { env: 'env?' }).env ?? process.env) }),
    arbitrate(params) {
      const { agent = 'centurion', worktree = true, env = process.env } = take(params, { agent: 'text?', worktree: 'flag?', env: 'env?' });
      return { mode: arbitrate({ agent, worktree, env }) };
    },
    'card.load'(params) {
      const { text, source = 'card.md' } = take(params, { text: 'text', source: 'text?' });
      return loadCard(text, source);
    },
    spawn: (params) => mine().spawn(takeSpawn(params)),
    steer: (params) => mine().steer(child(params), take(params, { text: 'text' }).text),
    abort: (params) => mine().abort(child(params)),
    wait(params) {
      const { token = '', timeoutMs = params.timeoutMs === null ? null : DEFAULT_WAIT_MS } = take(params, { token: 'text?', timeoutMs: 'number?' });
      return mine().wait(child(params), { timeoutMs, token });
    },
    cancel: (params) => ({ cancelled: mine().cancel(take(params, { token: 'text' }).token) }),
    status: (params) => mine().status(child(params)),
    collect: (params) => mine().collect(child(params)),
    capabilities: () => mine().capabilities(),
    retire: (params) => mine().retire(child(params)),
    async shutdown() {
      await supervisor?.shutdown();
      return {};
    },
  };

  async function answer(method, params) {
    if (!Object.hasOwn(calls, method)) return { error: { code: -32601, message: `this driver has no ${method}`, data: { code: 'not-implemented' } } };
    try {
      return { result: await calls[method](params) };
    } catch (error) {
      if (error instanceof Failure) return { error: { code: -32000, message: error.message, data: error.data() } };
      console.error(error);
      return { error: { code: -32603, message: `an exception got out: ${error?.message}` } };
    }
  }

  return {
    async hear(line) {
      let request;
      try {
        request = JSON.parse(line.toString('utf8'));
      } catch {
        request = null;
      }
      if (!isObject(request) || typeof request.method !== 'string' || !Number.isInteger(request.id)) {
        console.error('passed over a line that is no request');
        return;
      }
      const response = await answer(request.method, isObject(request.params) ? request.params : {});
      write(`${JSON.stringify({ jsonrpc: '2.0', id: request.id, ...response })}\n`);
    },
    async leave() {
      await supervisor?.shutdown();
    },
  };
}

const driver = createDriver((line) => process.stdout.write(line));
const lines = new LineSplitter();

/** @param {number} code */
function leave(code) {
  setTimeout(() => process.exit(code), LEAVE_MS).unref();
  driver.leave().finally(() => process.stdout.write('', () => process.exit(code)));
}

process.stdin.on('data', (chunk) => {
  for (const line of lines.push(chunk)) void driver.hear(line);
});
process.stdin.once('end', () => leave(0));
process.stdin.once('error', () => leave(0));
process.stdout.once('error', () => leave(0));
process.once('SIGTERM', () => leave(143));
process.once('SIGINT', () => leave(130));
