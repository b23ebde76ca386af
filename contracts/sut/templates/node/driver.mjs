// A driver for `legion-contracts check --sut "node driver.mjs"`: the SUT protocol on standard input and output.
// Fill in the calls below with your supervisor, declare the features you have, and ask `legion-contracts sut doctor`.
// What each call takes and gives: `legion-contracts sut protocol`.

const NAME = "my supervisor";
const VERSION = "0.0.0";

// The features whose calls work: "terminal" first (spawn, steer, abort, wait, status, retire), then as you like
// "verdict", "host", "arbitration", "cards", "capabilities", "cancel", "inprocess", "memory", "rpc".
const FEATURES = [];

let settings = { pollMs: 250, memoryEnv: {} };

// Each call: its parameters in, its result out. Throw a `Failure` for what your supervisor reports.
const calls = {
  async initialize(params) {
    settings = params.settings;
    return { protocolVersion: 1, name: NAME, version: VERSION, language: "JavaScript", features: FEATURES };
  },

  async shutdown() {
    return {}; // end your bridges here; children go on
  },

  // async spawn({ handle, runId, agent, worktree, task, cwd, sessionFile, ...more }) {
  //   return { mode: "terminal", child: "child-1", name: "lgl-...", promptTurn: 0 };
  // },
  // async wait({ child, timeoutMs, token }) {
  //   return { settled: false, abnormal: false, reason: "timeout", lastTurn: 0, lastStatus: "idle" };
  // },
};

export class Failure extends Error {
  constructor(code, message, data = {}) {
    super(message);
    this.data = { code, ...data }; // child, known, kind, hint
  }
}

async function answer({ id, method, params }) {
  try {
    if (!Object.hasOwn(calls, method)) {
      say({ id, error: { code: -32601, message: `this driver has no ${method}`, data: { code: "not-implemented" } } });
      return;
    }
    say({ id, result: await calls[method](params) });
  } catch (error) {
    console.error(error); // standard error is shown when a scenario fails
    say({ id, error: { code: -32000, message: String(error.message), data: error.data } });
  }
}

function say(message) {
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
}

// Lines end at the byte 0A and nowhere else, so no readline here: it would cut at U+2028 as well.
let held = [];
process.stdin.on("data", (piece) => {
  let from = 0;
  for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, from)) {
    held.push(piece.subarray(from, at));
    from = at + 1;
    const line = Buffer.concat(held).toString("utf8");
    held = [];
    answer(JSON.parse(line)); // not awaited: calls run side by side
  }
  held.push(piece.subarray(from));
});
process.stdin.on("end", async () => {
  await calls.shutdown();
  process.exit(0);
});
