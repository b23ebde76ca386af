import { spawn, type ChildProcess } from "node:child_process";
import type { LegionSupervisor, SpawnInput } from "../shared/types.js";

export class RpcSupervisor implements LegionSupervisor {
  readonly #children = new Map<string, ChildProcess>();

  async spawn(input: SpawnInput): Promise<string> {
    const child = spawn("pi", ["--mode", "rpc"], { cwd: input.cwd, env: { ...input.env } });
    this.#children.set(input.handle, child);
    return input.handle;
  }

  async retire(handle: string): Promise<void> {
    this.#children.get(handle)?.kill("SIGTERM");
  }
}
