import type { LegionSupervisor, SpawnInput } from "../shared/types.js";

export class InprocessSupervisor implements LegionSupervisor {
  async spawn(input: SpawnInput): Promise<string> {
    return input.handle;
  }

  async retire(_handle: string): Promise<void> {}
}
