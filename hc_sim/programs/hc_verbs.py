"""The verbs of `hc` beside `connect`: each is one call to the core, shown for a person or, with --json, for a program.

Loaded by `hc` only when one of them is asked for. Standard library only.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

VERSION = "0.1.20"
REPLY_S = 10.0
"""How long a call may take; a send or a wait has its own time."""
SEND_S = 90.0
CHECK_IN_MS = 180_000
"""How long `run` and `wait` wait before they let the program go on alone."""
MAX_REPLY_BYTES = 64 * 1024 * 1024

HELP = """\
hc - talk to the core that owns your terminals

  hc run -- make test              start a program, wait for it (180 s at most)
  hc run --bg --name build -- make start it and return at once; prints its address
  hc run --bg --label herdr.space=work -- pi "fix the tests"
  hc ls                            live terminals; --all: finished ones too; --json
  hc get build                     one terminal, by name or address; --json
  hc send build "now the docs"     type a prompt and submit it
  hc wait build                    until it is not working any more; --timeout SECONDS
  hc read build --lines 20         its last lines, without attaching
  hc interrupt build               press the stop key: Esc for an agent, Ctrl+C otherwise
  hc kill build                    end the program; it stays listed until removed
  hc rm build                      remove a finished terminal
  hc label build space=work x=     set a label, remove another
  hc schema                        what the core can do (OpenRPC, JSON)
  hc connect [--json]              JSON-RPC, one line each way, on stdin and stdout
  hc --version

run also takes --cwd DIR, --keep (a shell instead, if the program is lost) and --outlive-parent.

The core is the one at $HC_SOCKET, else at $HC_TERMINAL_SOCKET, else that of session $HC_SESSION.
Exit codes: 0 done, 1 it failed and one line on stderr says why, 2 wrong usage.
"""

Connect = Callable[[], Any]
Call = Callable[..., Any]


class Usage(Exception):  # noqa: N818 - one line for a person
    """Wrong words on the command line."""


class CallFailed(Exception):  # noqa: N818 - one line for a person
    """The core said no, or nothing."""


def main(argv: Sequence[str], connect: Connect) -> int:
    """Run one verb; returns the exit code. Whatever `connect` raises passes through."""
    words = list(argv)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    if not words or words[0] in ("--help", "-h", "help"):
        sys.stdout.write(HELP)
        return 0 if words else 2
    if words == ["--version"]:
        sys.stdout.write(f"hc {VERSION}\n")
        return 0
    verb = _VERBS.get(words[0])
    try:
        if verb is None:
            raise Usage(f"there is no `hc {words[0]}`{_nearest(words[0], list(_VERBS))}")
        if words[1:] in (["--help"], ["-h"]):
            sys.stdout.write(HELP)
            return 0
        return verb(words[1:], lambda method, params, seconds=REPLY_S: _call(connect, method, params, seconds))
    except Usage as error:
        return _complain(f"{error}; see `hc --help`", 2)
    except CallFailed as error:
        return _complain(str(error), 1)
    except (LookupError, TypeError, AttributeError, ValueError):
        return _complain(f"the core's answer has not the form that `hc {words[0]}` expects", 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


def _connect(words: list[str], _: Call) -> int:
    """Only reached with words that the bridge does not know."""
    _options(words, "connect", flags=("--json",))
    raise Usage("`hc connect` takes --json at most once")


def _schema(words: list[str], call: Call) -> int:
    _options(words, "schema")
    return _show_json(call("rpc.discover", {}))


def _ls(words: list[str], call: Call) -> int:
    given, _ = _options(words, "ls", flags=("--all", "--json"))
    found = call("terminal.list", {"all": True} if given["--all"] else {})["terminals"]
    if given["--json"]:
        return _show_json([_compact(terminal) for terminal in found])
    rows = [("ADDRESS", "NAME", "STATE", "STATUS", "TURN", "PROGRAM"), *map(_row, found)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        sys.stdout.write("  ".join([*cells, row[5]]).rstrip() + "\n")
    return 0


def _get(words: list[str], call: Call) -> int:
    given, (target,) = _options(words, "get", "TERMINAL", flags=("--json",))
    terminal = _unwrap(call("terminal.get", {"terminal": target}))
    if given["--json"]:
        return _show_json(terminal)
    for key, value in terminal.items():
        if value not in (None, {}, []):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            sys.stdout.write(f"{key:16}{_plain(text)}\n")
    return 0


def _run(words: list[str], call: Call) -> int:
    given, command = _options(
        words,
        "run",
        "[--]",
        "CMD...",
        flags=("--bg", "--keep", "--outlive-parent"),
        values=("--name", "--cwd"),
        lists=("--label",),
    )
    params: dict[str, Any] = {"argv": command} if command else {}
    params |= {key[2:]: given[key] for key in ("--name", "--cwd") if given[key] is not None}
    if "cwd" in params:
        params["cwd"] = os.path.abspath(params["cwd"])  # noqa: PTH100 - pathlib costs more than the whole call
    if given["--label"]:
        params["labels"] = _labels(given["--label"], "--label")
    if given["--keep"]:
        params["keep"] = True
    if os.environ.get("HC_TERMINAL_ID"):
        params["caller"] = os.environ["HC_TERMINAL_ID"]
    if given["--outlive-parent"]:
        params["die_with_parent"] = False
    address = _unwrap(call("terminal.run", params))["address"]
    sys.stdout.write(f"{address}\n")
    if given["--bg"]:
        return 0
    sys.stdout.flush()
    return _waited(call, address, CHECK_IN_MS)


def _send(words: list[str], call: Call) -> int:
    given, (target, text) = _options(words, "send", "TERMINAL", "TEXT", flags=("--force",))
    force = {"force": True} if given["--force"] else {}
    answer = call("terminal.send", {"terminal": target, "text": text, **force}, SEND_S)
    if not answer.get("started", True):
        sys.stderr.write("hc: sent, but the core could not confirm that a turn began; do not send it again\n")
    return 0


def _wait(words: list[str], call: Call) -> int:
    given, (target,) = _options(words, "wait", "TERMINAL", values=("--timeout",))
    limit = CHECK_IN_MS
    if given["--timeout"] is not None:
        limit = _number(given["--timeout"], "--timeout", "seconds") * 1_000
    return _waited(call, target, limit)


def _read(words: list[str], call: Call) -> int:
    given, (target,) = _options(words, "read", "TERMINAL", values=("--lines",))
    lines = {} if given["--lines"] is None else {"lines": _number(given["--lines"], "--lines", "lines")}
    text = call("terminal.read", {"terminal": target, **lines})["text"]
    sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")
    return 0


def _interrupt(words: list[str], call: Call) -> int:
    _, (target,) = _options(words, "interrupt", "TERMINAL")
    answer = call("terminal.interrupt", {"terminal": target})
    if answer.get("effect") is False:
        sys.stderr.write("hc: the key was pressed, and nothing changed by it\n")
    return 0


def _kill(words: list[str], call: Call) -> int:
    _, (target,) = _options(words, "kill", "TERMINAL")
    call("terminal.kill", {"terminal": target})
    return 0


def _rm(words: list[str], call: Call) -> int:
    _, (target,) = _options(words, "rm", "TERMINAL")
    call("terminal.rm", {"terminal": target})
    return 0


def _label(words: list[str], call: Call) -> int:
    _, (target, *pairs) = _options(words, "label", "TERMINAL", "KEY=VALUE...")
    labels = {key: value or None for key, value in _labels(pairs, "a label").items()}
    call("terminal.label", {"terminal": target, "labels": labels})
    return 0


_VERBS: dict[str, Callable[[list[str], Call], int]] = {
    "connect": _connect,
    "schema": _schema,
    "ls": _ls,
    "get": _get,
    "run": _run,
    "send": _send,
    "wait": _wait,
    "read": _read,
    "interrupt": _interrupt,
    "kill": _kill,
    "rm": _rm,
    "label": _label,
}


def _call(connect: Connect, method: str, params: dict[str, Any], seconds: float) -> Any:
    """One request and its reply; raises `CallFailed` with what a person needs to know."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    try:
        line = json.dumps(request, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        raise CallFailed("the words on the command line are not UTF-8") from None
    link = connect()
    link.settimeout(seconds)
    try:
        link.sendall(line)
        reply = json.loads(_line(link))
    except TimeoutError:
        raise CallFailed(f"the core did not answer {method} within {seconds:g} s") from None
    except OSError as error:
        raise CallFailed(f"the core went away during {method}: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise CallFailed(f"the core answered {method} with something that is not JSON") from None
    if not isinstance(reply, dict) or ("result" in reply) == ("error" in reply):
        raise CallFailed(f"the core answered {method} with something that is no reply")
    if "error" not in reply:
        return reply["result"]
    said = reply["error"] if isinstance(reply["error"], dict) else {}
    data = said.get("data")
    hint = data.get("hint") if isinstance(data, dict) else None
    raise CallFailed(str(said.get("message", "error")) + (f" ({hint})" if hint else ""))


def _line(link: Any) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        data = link.recv(65_536)
        if not data:
            raise CallFailed("the core closed the connection instead of answering")
        parts.append(data)
        size += len(data)
        if b"\n" in data:
            return b"".join(parts).split(b"\n", 1)[0]
        if size > MAX_REPLY_BYTES:
            raise CallFailed(f"the core's answer is longer than {MAX_REPLY_BYTES} bytes")


def _waited(call: Call, target: str, limit_ms: int) -> int:
    answer = call("terminal.wait", {"terminal": target, "timeout_ms": limit_ms}, limit_ms / 1_000 + REPLY_S)
    terminal = answer["terminal"]
    if not answer["ended"]:
        sys.stderr.write(f"hc: still running after {limit_ms / 1_000:g} s, and left running: hc wait {target}\n")
        return 0
    status = (terminal.get("status") or {}).get("state")
    how = terminal["state"] if terminal["state"] == "finished" or not status else status
    code, signal = terminal.get("exit_code"), terminal.get("signal")
    sys.stderr.write(f"hc: {how}" + (f", {signal}" if signal else "") + (f", exit code {code}" if code else "") + "\n")
    return 1 if code or signal else 0


def _options(
    words: Sequence[str],
    verb: str,
    *places: str,
    flags: Sequence[str] = (),
    values: Sequence[str] = (),
    lists: Sequence[str] = (),
) -> tuple[dict[str, Any], list[str]]:
    """Options and positional words. A last place with `...` takes one or more words; `run` stops at its first word."""
    given: dict[str, Any] = {**dict.fromkeys(flags, False), **dict.fromkeys(values), **{name: [] for name in lists}}
    rest: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, equals, inline = word.partition("=")
        if word in flags:
            given[word] = True
        elif name in values or name in lists:
            if not equals and not waiting:
                raise Usage(f"{name} needs a value")
            value = inline if equals else waiting.pop(0)
            given[name] = [*given[name], value] if name in lists else value
        elif word == "--":
            return given, _placed(verb, places, [*rest, *waiting])
        elif word.startswith("-" if verb == "run" else "--"):
            raise Usage(f"`hc {verb}` has no option {name}{_nearest(name, [*flags, *values, *lists])}")
        elif verb == "run":
            return given, [word, *waiting]
        else:
            rest.append(word)
    return given, _placed(verb, places, rest)


def _placed(verb: str, places: Sequence[str], words: list[str]) -> list[str]:
    open_end = bool(places) and places[-1].endswith("...")
    if verb != "run" and (len(words) < len(places) or (len(words) > len(places) and not open_end)):
        raise Usage(f"`hc {verb}` takes {' '.join(places) or 'no words'}")
    return words


def _labels(pairs: Sequence[str], what: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise Usage(f"{what} is KEY=VALUE, not {pair!r}")
        labels[key] = value
    return labels


def _number(text: str, name: str, unit: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Usage(f"{name} takes a whole number of {unit}, not {text!r}")
    return int(text)


def _nearest(word: str, known: Sequence[str]) -> str:
    import difflib

    close = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {close[0]}?" if close else ""


def _unwrap(result: dict[str, Any]) -> dict[str, Any]:
    inner = result.get("terminal")
    return inner if isinstance(inner, dict) else result


def _compact(terminal: dict[str, Any]) -> dict[str, Any]:
    return {key: terminal.get(key) for key in ("address", "name", "state", "argv", "cwd")}


def _row(terminal: dict[str, Any]) -> tuple[str, ...]:
    status = (terminal.get("status") or {}).get("state", "-")
    program = " ".join(terminal["argv"])
    return (
        terminal["address"],
        terminal.get("name") or "-",
        terminal["state"],
        status,
        str(terminal.get("turn", "-")),
        _plain(program if len(program) <= 60 else program[:57] + "..."),
    )


def _plain(text: str) -> str:
    """Text from elsewhere, with everything that could move a cursor made visible."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _show_json(value: Any) -> int:
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    return 0


def _complain(line: str, code: int) -> int:
    sys.stdout.flush()
    sys.stderr.write("hc: " + _plain(line) + "\n")
    return code
