"""The two trees that are compared: a commit, and the work tree with everything uncommitted and untracked in it.

A work tree is read by ourselves, as bytes: no filter, no conversion and no link of the checkout is followed.
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from contracts.repo.findings import GitBrokeError, RepoError
from contracts.repo.git import Git, blobs, core_settings

MAX_FILES: Final = 100_000
MAX_READ_BYTES: Final = 2**20
"""No file longer than this is read for its content: no source, card or package.json of a checkout is."""
MAX_HASHED_BYTES: Final = 2**31
"""All files of the work tree that have the size of their base together."""
CHUNK: Final = 2**20
FALSE: Final = frozenset({"false", "no", "off", "0"})
LINK: Final = "120000"
GITLINK: Final = "160000"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a tree: its mode as git writes it, the name of its blob, its size in bytes."""

    mode: str
    blob: str
    size: int


@dataclass(frozen=True, slots=True)
class Tree:
    """Files by path, and the text of those that can be looked into (`too_long` names the others)."""

    name: str
    entries: Mapping[str, Entry]
    content: Mapping[str, bytes] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """The text of a file that is there, regular, short enough and UTF-8; else None (`why_not` says why)."""
        data = self.content.get(path)
        if data is None:
            return None
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None

    def why_not(self, path: str) -> str:
        """Why `text` gives nothing, in words that follow the path."""
        entry = self.entries.get(path)
        if entry is None:
            return "is not there"
        if entry.mode == LINK:
            return "is a symbolic link, which is not followed"
        if entry.mode == GITLINK:
            return "is a submodule"
        if entry.size > MAX_READ_BYTES:
            return f"has {entry.size} bytes, and {MAX_READ_BYTES} is the most that is read"
        return "is not UTF-8"


def commit_tree(git: Git, commit: str, name: str) -> Tree:
    """The tree of a commit, with the content of every file that the gate may look into."""
    _, out = git.run("ls-tree", "-r", "-z", "-l", "--full-tree", commit)
    entries: dict[str, Entry] = {}
    for line in _lines(out):
        head, _, path = line.partition(b"\t")
        mode, _, blob, size = head.decode("ascii", "replace").split()
        if mode != GITLINK and not size.isdigit():
            raise GitBrokeError(f"{git.top} lacks object {blob}; a partial clone has to be fetched completely first")
        entries[os.fsdecode(path)] = Entry(mode, blob, int(size) if size.isdigit() else 0)
    looked = {path: entry for path, entry in entries.items() if _is_looked_into(path, entry)}
    found = blobs(git, (entry.blob for entry in looked.values()))
    return Tree(name, entries, {path: found[entry.blob] for path, entry in looked.items()})


def work_tree(git: Git, base: Tree) -> Tree:
    """What lies in the checkout now: tracked files as they are on disk, and untracked ones that no .gitignore names."""
    hasher = _Hasher(git, base)
    entries: dict[str, Entry] = {}
    content: dict[str, bytes] = {}
    for path, listed in _listed(git):
        entry = hasher.entry(path, listed)
        if entry is None:
            continue
        entries[path] = entry
        if _is_looked_into(path, entry):
            data = hasher.read(path)
            if data is not None:
                content[path] = data
    left_out = {path: entry for path, entry in entries.items() if entry.size < 0 and entry.mode != GITLINK}
    found = blobs(git, (entry.blob for entry in left_out.values()))
    for path, entry in left_out.items():
        entries[path] = Entry(entry.mode, entry.blob, len(found[entry.blob]))
        if _is_looked_into(path, entries[path]):
            content[path] = found[entry.blob]
    return Tree("work tree", entries, content)


class _Hasher:
    """Reads files below the top folder, never through a link, and gives them the names that git would."""

    def __init__(self, git: Git, base: Tree) -> None:
        self._git = git
        self._base = base
        self._left = MAX_HASHED_BYTES
        settings = core_settings(git)
        self._modes = settings.get("core.filemode") not in FALSE
        self._converts = settings.get("core.autocrlf", "false") not in FALSE
        self._hash = "sha256" if any(len(entry.blob) == 64 for entry in base.entries.values()) else "sha1"

    def entry(self, path: str, listed: Entry | None) -> Entry | None:
        """The file as it is on disk; what the index says of one that a sparse checkout left out; None when gone."""
        if listed is not None and listed.mode == GITLINK:
            return listed
        base = self._base.entries.get(path)
        with _opened(self._git, path) as (folder, name):
            if folder is None:
                return listed if listed is not None and listed.size < 0 else None
            try:
                about = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except OSError:
                return listed if listed is not None and listed.size < 0 else None
            if stat.S_ISLNK(about.st_mode):
                target = os.fsencode(os.readlink(name, dir_fd=folder))
                return Entry(LINK, self._name(target), len(target))
            if not stat.S_ISREG(about.st_mode):
                return None if stat.S_ISDIR(about.st_mode) else Entry("000000", "", 0)
        return self._regular(path, about, base)

    def read(self, path: str) -> bytes | None:
        """The bytes of a regular file, with line ends as git would store them; None when it is not there any more."""
        data = b"".join(self._chunks(path, MAX_READ_BYTES + 1))
        return data.replace(b"\r\n", b"\n") if self._converts else data

    def _regular(self, path: str, about: os.stat_result, base: Entry | None) -> Entry:
        mode = "100755" if about.st_mode & stat.S_IXUSR else "100644"
        if not self._modes and base is not None and base.mode.startswith("100"):
            mode = base.mode
        size = about.st_size
        if self._converts and size <= MAX_READ_BYTES:
            data = self.read(path) or b""
            return Entry(mode, self._name(data), len(data))
        if size > MAX_READ_BYTES and (base is None or base.size != size):
            return Entry(mode, "", size)  # its name is needed only to find it equal
        self._left -= size
        if self._left < 0:
            raise RepoError(f"{self._git.top} holds more than {MAX_HASHED_BYTES // 2**30} GiB of files; judge --head")
        digest = hashlib.new(self._hash, b"blob %d\0" % size, usedforsecurity=False)
        for chunk in self._chunks(path, size):
            digest.update(chunk)
        return Entry(mode, digest.hexdigest(), size)

    def _chunks(self, path: str, limit: int) -> Iterator[bytes]:
        with _opened(self._git, path) as (folder, name):
            if folder is None:
                return
            try:
                number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            except OSError as error:
                raise RepoError(f"{path} cannot be read: {error.strerror}; make it readable and try again") from error
            with open(number, "rb", buffering=0) as stream:  # noqa: PTH123 - an open file by its number
                if not stat.S_ISREG(os.fstat(number).st_mode):
                    return
                while limit > 0 and (chunk := stream.read(min(CHUNK, limit))):
                    limit -= len(chunk)
                    yield chunk

    def _name(self, data: bytes) -> str:
        return hashlib.new(self._hash, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


@contextlib.contextmanager
def _opened(git: Git, path: str) -> Iterator[tuple[int | None, str]]:
    """The folder that holds `path`, opened step by step so that no link leads out of the checkout, and the last name.

    The folder is None when a step is missing, a link or no folder.
    """
    *steps, name = path.split("/")
    folder = os.open(git.top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for step in steps:
            try:
                inner = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            except OSError:
                yield None, name
                return
            os.close(folder)
            folder = inner
        yield folder, name
    finally:
        os.close(folder)


def _listed(git: Git) -> Iterator[tuple[str, Entry | None]]:
    """Paths of the index, with what it says of them (a size of -1: left out by a sparse checkout), then untracked."""
    seen: set[str] = set()
    _, out = git.run("ls-files", "-z", "-t", "--stage", "--others", "--exclude-standard")
    for line in sorted(_lines(out), key=lambda line: line.startswith(b"? ")):
        if line.startswith(b"? "):
            path = os.fsdecode(line[2:])
            if path.endswith("/"):
                yield path.rstrip("/"), Entry(GITLINK, "", 0)  # a repository inside this one
            elif path not in seen:
                yield path, None
            continue
        head, _, raw = line.partition(b"\t")
        tag, mode, blob, _ = head.decode("ascii", "replace").split()
        path = os.fsdecode(raw)
        if path not in seen:
            seen.add(path)
            yield path, Entry(mode, blob, -1 if tag == "S" else 0)


def _lines(out: bytes) -> list[bytes]:
    lines = [line for line in out.split(b"\0") if line]
    if len(lines) > MAX_FILES:
        raise RepoError(f"there are {len(lines)} files, and {MAX_FILES} is the most; is this a pi-legion checkout?")
    return lines


def _is_looked_into(path: str, entry: Entry) -> bool:
    """Sources, cards, and files of JSON: all that the judges read."""
    wanted = (".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".jsx", ".md", ".mdx", ".markdown",
              ".json", ".yaml", ".yml", ".toml", ".txt")  # fmt: skip
    return entry.mode.startswith("100") and 0 <= entry.size <= MAX_READ_BYTES and path.lower().endswith(wanted)
