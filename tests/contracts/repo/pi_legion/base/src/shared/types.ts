/** Where a child runs. */
export const SPAWN_MODES = ["inprocess", "rpc"] as const;

export type SpawnMode = (typeof SPAWN_MODES)[number];

export interface SpawnInput {
  readonly agent: string;
  readonly handle: string;
  readonly cwd: string;
  readonly worktree: boolean;
  readonly env: Readonly<Record<string, string>>;
}

export interface LegionSupervisor {
  spawn(input: SpawnInput): Promise<string>;
  retire(handle: string): Promise<void>;
}

export function assertNever(value: never): never {
  throw new Error(`unexpected value ${String(value)}`);
}
