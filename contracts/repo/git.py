"""git plumbing on a checkout that nobody vouches for: no shell, no configuration but ours, limits on time and output.

What could make git run a program or call out is switched off: the file watcher, hooks, external filters (no command
used here applies one), the fetching of missing objects, and every transport. Replaced objects are not followed.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contracts.repo.findings import GitBrokeError, RepoError

GIT_LIMIT_S: Final = 30.0
"""No single git command may take longer."""
MAX_OUTPUT_BYTES: Final = 256 * 2**20
MAX_ERROR_CHARACTERS: Final = 300
SETTINGS: Final = (
    ("core.fsmonitor", ""),
    ("core.untrackedCache", "false"),
    ("core.hooksPath", os.devnull),
    ("core.excludesFile", os.devnull),
    ("core.attributesFile", os.devnull),
    ("protocol.allow", "never"),
)
"""Said on every command line, where they outweigh what the repository's own configuration says."""
NAMED_SHA: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Git:
    """git on one checkout: the executable, the top folder and the names of its objects' hash."""

    executable: str
    top: Path

    def run(self, *words: str, feed: bytes | None = None, ok: Sequence[int] = (0,)) -> tuple[int, bytes]:
        """Run one command and return its exit code and output.

        Raises GitBrokeError when it takes longer than `GIT_LIMIT_S`, says more than `MAX_OUTPUT_BYTES`, or ends with a
        code that is not in `ok`.
        """
        settings = [part for name, value in SETTINGS for part in ("-c", f"{name}={value}")]
        code, out, err = _bounded([self.executable, "--no-pager", *settings, *words], self.top, _env(self.top), feed)
        if code not in ok:
            raise GitBrokeError(f"git {words[0]} failed in {self.top}: {_shown(err) or f'exit code {code}'}")
        return code, out


def open_git(path: Path) -> Git:
    """git for the checkout whose top folder is `path`. Raises RepoError when there is none."""
    executable = shutil.which("git")
    if executable is None:
        raise RepoError("git is not on PATH; install it, this command reads the base with it")
    if not path.exists():
        raise RepoError(f"{path}: there is no such folder")
    if not path.is_dir():
        raise RepoError(f"{path} is a file; name the top folder of a checkout")
    top = path.resolve()
    if not (top / ".git").exists():
        raise RepoError(_why_no_checkout(path, top))
    return Git(executable, top)


def commit_of(git: Git, rev: str, option: str = "--base") -> str:
    """The name of the commit that `rev` means. Raises RepoError that says what to do when there is none."""
    if not rev or rev.startswith("-") or any(ord(letter) < 32 for letter in rev):
        raise RepoError(f"{option}: {rev!r} is no name of a commit; give a branch, a tag or a commit id")
    code, out = git.run("rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}", ok=(0, 1, 128))
    name = out.decode("ascii", "replace").strip()
    if code == 0 and NAMED_SHA.fullmatch(name):
        return name
    code, shallow = git.run("rev-parse", "--is-shallow-repository", ok=(0, 128))
    if code:
        raise RepoError(f"{git.top} is no git repository that git can open; clone it again")
    if shallow.strip() == b"true":
        raise RepoError(
            f"{option}: this clone is shallow and does not hold {rev!r}; fetch it first "
            "(git fetch --unshallow, or fetch-depth: 0 in actions/checkout)"
        )
    raise RepoError(f"{option}: {git.top} has no commit {rev!r}; see git branch --all and git tag for what there is")


def descends(git: Git, base: str, head: str) -> bool:
    """Whether `base` is `head` or comes before it."""
    return base == head or git.run("merge-base", "--is-ancestor", base, head, ok=(0, 1, 128))[0] == 0


def core_settings(git: Git) -> Mapping[str, str]:
    """How the checkout says that files are kept on this disk: `core.filemode` and `core.autocrlf`, where it says so."""
    _, out = git.run("config", "--null", "--get-regexp", r"^core\.(filemode|autocrlf)$", ok=(0, 1, 2, 128))
    pairs = (entry.partition("\n") for entry in out.decode("utf-8", "replace").split("\0") if entry)
    return {name.lower(): value.strip().lower() for name, _, value in pairs}


def blobs(git: Git, names: Iterable[str]) -> Mapping[str, bytes]:
    """The contents of many blobs in one go. Raises GitBrokeError when one of them is not in this clone."""
    wanted = sorted(set(names))
    if not wanted:
        return {}
    _, out = git.run("cat-file", "--batch", feed="".join(f"{name}\n" for name in wanted).encode())
    found: dict[str, bytes] = {}
    at = 0
    for name in wanted:
        end = out.find(b"\n", at)
        head = out[at:end].split()
        if len(head) != 3:
            raise GitBrokeError(f"{git.top} lacks object {name}; a partial clone has to be fetched completely first")
        size = int(head[2])
        found[name] = out[end + 1 : end + 1 + size]
        at = end + size + 2
    return found


def _why_no_checkout(path: Path, top: Path) -> str:
    for parent in top.parents:
        if (parent / ".git").exists():
            return f"{path} is a folder inside the repository {parent}; name that one"
    if (top / "HEAD").is_file() and (top / "objects").is_dir():
        return f"{path} is a bare repository, it has no work tree; name a checkout of it"
    return f"{path} is no git repository; name the top folder of a pi-legion checkout"


def _env(top: Path) -> dict[str, str]:
    """Nothing of the caller's environment but PATH. With GIT_DIR given, git looks for no repository elsewhere."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_DIR": str(top / ".git"),
        "GIT_WORK_TREE": str(top),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LITERAL_PATHSPECS": "1",
    }


def _bounded(argv: list[str], cwd: Path, env: dict[str, str], feed: bytes | None) -> tuple[int, bytes, bytes]:
    """Run a program in a process group of its own, and end that group after the time or the output that it may use."""
    with tempfile.TemporaryFile() as fed, tempfile.TemporaryFile() as err:
        fed.write(feed or b"")
        fed.seek(0)
        try:
            process = subprocess.Popen(
                argv, cwd=cwd, env=env, stdin=fed, stdout=subprocess.PIPE, stderr=err, start_new_session=True
            )
        except OSError as error:
            raise GitBrokeError(f"{argv[0]} cannot be started: {error.strerror or error}") from error
        late = threading.Event()
        timer = threading.Timer(GIT_LIMIT_S, _end_late, (process, late))
        timer.daemon = True
        timer.start()
        try:
            assert process.stdout is not None  # noqa: S101 - asked for above
            out = process.stdout.read(MAX_OUTPUT_BYTES + 1)
            if len(out) > MAX_OUTPUT_BYTES:
                raise GitBrokeError(f"git said more than {MAX_OUTPUT_BYTES // 2**20} MiB in {cwd}; is it a pi-legion?")
            process.wait()
        finally:
            timer.cancel()
            _end(process)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if late.is_set():
            raise GitBrokeError(f"git did not finish within {GIT_LIMIT_S:g} s in {cwd}; look for odd files below .git")
        err.seek(0)
        return process.returncode, out, err.read(MAX_ERROR_CHARACTERS * 4)


def _end_late(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _shown(text: bytes) -> str:
    return " ".join(text.decode("utf-8", "replace").split())[:MAX_ERROR_CHARACTERS]
