import { arbitrate } from "./src/runs/orchestrator.js";
import { DEFAULTS } from "./src/settings/settings.js";
import { InprocessSupervisor } from "./src/supervisor/inprocess-supervisor.js";
import { RoutingSupervisor } from "./src/supervisor/routing-supervisor.js";
import { RpcSupervisor } from "./src/supervisor/rpc-supervisor.js";
import { HcClient, resolveHc } from "./src/hc/client.js";
import { TerminalSupervisor } from "./src/supervisor/terminal-supervisor.js";

export function createLegion(): RoutingSupervisor {
  if (DEFAULTS.maxChildren < 1) throw new Error("no child may run");
  const terminal = new TerminalSupervisor(new HcClient(resolveHc(process.env)));
  const backends = { inprocess: new InprocessSupervisor(), rpc: new RpcSupervisor(), terminal };
  return new RoutingSupervisor(backends, (input) => arbitrate(input, input.worktree));
}
