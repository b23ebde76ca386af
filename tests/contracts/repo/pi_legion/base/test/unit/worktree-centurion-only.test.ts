import { expect, it } from "vitest";
import { arbitrate } from "../../src/runs/orchestrator.js";

it("worktree-centurion-only", () => {
  expect(arbitrate({ agent: "worker", handle: "a", cwd: "/", worktree: false, env: {} }, false)).toBe("inprocess");
});
