import { expect, it } from "vitest";
import { terminalHostAvailable } from "../../src/supervisor/terminal-supervisor.js";

it("needs both markers", () => {
  expect(terminalHostAvailable({ HC_TERMINAL_SOCKET: "/tmp/s" })).toBe(false);
});
