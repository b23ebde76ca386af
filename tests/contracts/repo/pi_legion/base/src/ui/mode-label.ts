import type { SpawnMode } from "../shared/types.js";

const LABELS: Record<SpawnMode, string> = {
  inprocess: "in process",
  rpc: "headless",
};

export function modeLabel(mode: SpawnMode): string {
  return LABELS[mode];
}
