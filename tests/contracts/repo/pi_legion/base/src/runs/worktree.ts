import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);
const TIMEOUT_MS = 10_000;

async function git(cwd: string, args: readonly string[]): Promise<string> {
  const { stdout } = await run("git", ["-C", cwd, ...args], { timeout: TIMEOUT_MS });
  return stdout.trim();
}

export async function probeWorktree(cwd: string): Promise<boolean> {
  return (await git(cwd, ["rev-parse", "--is-inside-work-tree"])) === "true";
}

export async function createWorktree(cwd: string, branch: string, path: string): Promise<string> {
  await git(cwd, ["worktree", "add", "-b", branch, path]);
  return path;
}

export async function removeWorktree(cwd: string, path: string): Promise<void> {
  await git(cwd, ["worktree", "remove", "--force", path]);
}
