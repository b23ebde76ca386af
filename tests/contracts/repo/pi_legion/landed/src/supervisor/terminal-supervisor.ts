import type { HcClient } from "../hc/client.js";
import type { LegionSupervisor, SpawnInput } from "../shared/types.js";

export function terminalHostAvailable(env: NodeJS.ProcessEnv): boolean {
  return Boolean(env.HC_TERMINAL_SOCKET) && Boolean(env.HC_TERMINAL_ID);
}

export function terminalName(runId: string, handle: string): string {
  return `lgl-${runId.slice(0, 8)}-${handle.replace(/[^a-z0-9_-]/g, "-")}`.slice(0, 32);
}

export class TerminalSupervisor implements LegionSupervisor {
  constructor(private readonly client: HcClient) {}

  async spawn(input: SpawnInput): Promise<string> {
    this.client.call("terminal.run", { cwd: input.cwd, argv: ["pi"], name: terminalName("run", input.handle) });
    return input.handle;
  }

  async retire(handle: string): Promise<void> {
    this.client.call("terminal.kill", { name: terminalName("run", handle) });
  }
}
