import { expect, it } from "vitest";
import { arbitrate } from "../../src/runs/orchestrator.js";

it("launch-worktree-probe", () => {
  expect(arbitrate({ agent: "worker", handle: "a", cwd: "/", worktree: false, env: {} }, false)).toBe("inprocess");
});
