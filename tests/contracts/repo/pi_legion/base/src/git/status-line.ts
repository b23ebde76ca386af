import { execFileSync } from "node:child_process";

export function branchName(cwd: string): string {
  return execFileSync("git", ["branch", "--show-current"], { cwd, encoding: "utf8" }).trim();
}

export function shortName(path: string): string {
  return path.split("/").at(-1) ?? path;
}
