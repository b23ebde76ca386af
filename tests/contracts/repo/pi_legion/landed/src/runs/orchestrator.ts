import type { LegionSupervisor, SpawnInput, SpawnMode } from "../shared/types.js";
import { terminalHostAvailable } from "../supervisor/terminal-supervisor.js";
import { createWorktree, probeWorktree } from "./worktree.js";

export interface LaunchDeps {
  readonly supervisor: LegionSupervisor;
  readonly env: NodeJS.ProcessEnv;
}

export function arbitrate(input: SpawnInput, worktree: boolean): SpawnMode {
  const held = terminalHostAvailable(process.env) ? "terminal" : "rpc";
  return worktree === true ? held : "inprocess";
}

export async function launch(input: SpawnInput, deps: LaunchDeps): Promise<string> {
  let cwd = input.cwd;
  if (input.worktree && (await probeWorktree(cwd))) {
    cwd = await createWorktree(cwd, `legion/${input.handle}`, `${cwd}/.worktrees/${input.handle}`);
  }
  return deps.supervisor.spawn({ ...input, cwd });
}
