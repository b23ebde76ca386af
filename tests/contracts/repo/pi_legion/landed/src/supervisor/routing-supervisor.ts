import { assertNever, type LegionSupervisor, type SpawnInput, type SpawnMode } from "../shared/types.js";

export class RoutingSupervisor implements LegionSupervisor {
  readonly #owners = new Map<string, SpawnMode>();

  constructor(
    private readonly backends: Record<SpawnMode, LegionSupervisor>,
    private readonly modeOf: (input: SpawnInput) => SpawnMode,
  ) {}

  backendFor(mode: SpawnMode): LegionSupervisor {
    switch (mode) {
      case "inprocess":
        return this.backends.inprocess;
      case "rpc":
        return this.backends.rpc;
      case "terminal":
        return this.backends.terminal;
      default:
        return assertNever(mode);
    }
  }

  async spawn(input: SpawnInput): Promise<string> {
    const mode = this.modeOf(input);
    if (mode === "inprocess" && input.worktree) throw new Error("inprocess cannot hold a worktree");
    this.#owners.set(input.handle, mode);
    return this.backendFor(mode).spawn(input);
  }

  async retire(handle: string): Promise<void> {
    const mode = this.#owners.get(handle);
    if (mode !== undefined) await this.backendFor(mode).retire(handle);
  }
}
