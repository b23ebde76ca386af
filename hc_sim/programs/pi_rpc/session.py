"""The session file: a header, then entries of JSON that name their parents, appended as they happen."""

from __future__ import annotations

import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_FILE_BYTES = 256 * 1024 * 1024
"""A session file larger than this is not resumed."""


class Unusable(Exception):  # noqa: N818 - one line for a person
    """Why a session cannot be used: the program says so and exits with code 1."""


class Session:
    """Entries in memory, and in a file if there is one.

    `path` None: `--no-session`. An existing empty file gets its first entries at once and keeps its mode; one that is
    not there appears, mode 0644, with the first message of the user. An existing session is gone on with.
    """

    def __init__(self, path: str | None, cwd: str, model: tuple[str, str], *, own_place: bool = False) -> None:
        self.path, self.cwd = path, cwd
        self.id = new_uuid()
        self.entries: list[dict[str, Any]] = []
        self.leaf: str | None = None
        self.name: str | None = None
        self.begun = False
        self.broken = False
        self._lazy = True
        if path is not None and os.path.isdir(path):
            raise Unusable(f"the session path {path} is a folder")
        present = path is not None and os.path.exists(path)
        if present and path is not None:
            self._load(path)
            self._lazy = False
        if not self.entries:
            self._header = {"type": "session", "version": 3, "id": self.id, "timestamp": iso(), "cwd": cwd}
            self._add({"type": "model_change", "provider": model[0], "modelId": model[1]})
            self._add({"type": "thinking_level_change", "thinkingLevel": "off"})
            if present:
                self._write([self._header, *self.entries])
        if own_place and path is not None:
            os.makedirs(os.path.dirname(path), exist_ok=True)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the session; those that a retry took back are not among them."""
        gone = {entry["targetId"] for entry in self.entries if entry.get("type") == "context_edit"}
        return [one["message"] for one in self.entries if one.get("type") == "message" and one["id"] not in gone]

    def message(self, message: dict[str, Any]) -> str:
        """Append a message; returns the id of its entry."""
        entry = self._add({"type": "message", "message": message})
        if message["role"] == "user":
            self.begun = True
        if self.begun or not self._lazy:
            self._flush(entry)
        return str(entry["id"])

    def edit(self, target: str) -> dict[str, Any]:
        """Append that an entry does not count any more; returns the new entry."""
        entry = self._add({"type": "context_edit", "targetId": target, "replacement": None})
        self._flush(entry)
        return entry

    def rename(self, name: str) -> None:
        """Append the name of the session."""
        self.name = name
        entry = self._add({"type": "session_info", "name": name})
        if not self._lazy:
            self._flush(entry)

    def _flush(self, entry: dict[str, Any]) -> None:
        if self.path is None or self.broken:
            return
        if not self._lazy:
            self._write([entry])
            return
        self._lazy = False
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        except OSError as error:  # somebody made it between our start and the first prompt
            self.broken = True
            raise Unusable(f"{error.strerror}: {self.path}") from None
        self._write([self._header, *self.entries])

    def _add(self, entry: dict[str, Any]) -> dict[str, Any]:
        own = os.urandom(4).hex()
        whole = {"type": entry["type"], "id": own, "parentId": self.leaf, "timestamp": iso(), **entry}
        self.leaf = own
        self.entries.append(whole)
        return whole

    def _write(self, entries: list[dict[str, Any]]) -> None:
        data = b"".join(encode(entry) + b"\n" for entry in entries)
        fd = os.open(self.path or "", os.O_WRONLY | os.O_APPEND)
        try:
            while data:
                data = data[os.write(fd, data) :]
        finally:
            os.close(fd)

    def _load(self, path: str) -> None:
        if os.path.getsize(path) > MAX_FILE_BYTES:
            raise Unusable(f"the session file {path} is larger than {MAX_FILE_BYTES} bytes")
        with open(path, "rb") as file:
            data = file.read()
        if not data:
            return
        header = None
        for line in data.split(b"\n"):
            entry = decode(line)
            if not isinstance(entry, dict):
                continue
            if entry.get("type") == "session" and header is None:
                header = entry
            elif isinstance(entry.get("id"), str):
                self.entries.append(entry)
                self.leaf = entry["id"]
        if header is None:
            raise Unusable(f"the file {path} is no session")
        self.id = str(header.get("id"))
        self.begun = any(entry.get("type") == "message" for entry in self.entries)
        if header.get("cwd") and not os.path.isdir(header["cwd"]):
            raise Unusable(f"the folder {header['cwd']} of the session {path} is gone")
        self.cwd = header.get("cwd") or self.cwd
        self._header = header
        if not data.endswith(b"\n"):  # a torn last line stays one bad line
            fd = os.open(path, os.O_WRONLY | os.O_APPEND)
            os.write(fd, b"\n")
            os.close(fd)


def default_path(env: os._Environ[str] | dict[str, str], cwd: str) -> str:
    """Where a session goes that nobody gave a place."""
    home = env.get("PI_CODING_AGENT_DIR") or f"{env.get('HOME') or '/'}/.pi/agent"
    stamp = iso().replace(":", "-").replace(".", "-")
    return f"{home}/sessions/--{cwd.strip('/').replace('/', '-')}--/{stamp}_{new_uuid()}.jsonl"


def encode(record: object) -> bytes:
    """A record as one line without its end."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def decode(line: bytes) -> object:
    """What a line says, or None for one that says nothing."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def iso() -> str:
    """Now, as the real program writes it: UTC, milliseconds."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"


def new_uuid() -> str:
    """A time-ordered id of the usual form."""
    digits = f"{int(time.time() * 1000):012x}7{os.urandom(9).hex()[:3]}8{os.urandom(8).hex()[:15]}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"
