import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

const METHODS = ["terminal.run", "terminal.get", "terminal.send", "terminal.interrupt", "terminal.kill"] as const;

export function resolveHc(env: NodeJS.ProcessEnv): string {
  if (env.HC_BIN) return env.HC_BIN;
  const found = (env.PATH ?? "").split(delimiter).map((folder) => join(folder, "hc"));
  return found.find((path) => existsSync(path)) ?? "hc";
}

export class HcClient {
  #child: ChildProcessWithoutNullStreams | undefined;

  constructor(private readonly bin: string) {}

  call(method: (typeof METHODS)[number], params: Record<string, unknown>): void {
    this.#child ??= spawn(this.bin, ["connect"], { stdio: "pipe" });
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })}\n`);
  }
}
