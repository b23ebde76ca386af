import { arbitrate } from "./src/runs/orchestrator.js";
import { DEFAULTS } from "./src/settings/settings.js";
import { InprocessSupervisor } from "./src/supervisor/inprocess-supervisor.js";
import { RoutingSupervisor } from "./src/supervisor/routing-supervisor.js";
import { RpcSupervisor } from "./src/supervisor/rpc-supervisor.js";

export function createLegion(): RoutingSupervisor {
  if (DEFAULTS.maxChildren < 1) throw new Error("no child may run");
  const backends = { inprocess: new InprocessSupervisor(), rpc: new RpcSupervisor() };
  return new RoutingSupervisor(backends, (input) => arbitrate(input, input.worktree));
}
