"""The command `pi`: options, script or recording, then the process."""

from __future__ import annotations

import json
import os

from .agent import Agent
from .argv import Options, Refused, parse
from .log import Log
from .process import Process
from .replay import Replay, read
from .session import Session, Unusable, default_path
from .streams import fill_standard_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from .process import Actor

SCRIPT_VARIABLE = "PI_RPC_SCRIPT"
REPLAY_VARIABLE = "PI_RPC_REPLAY"
NO_MODELS = (
    b"Warning: No models available. Use /login to log into a provider via OAuth or API key. See:\n"
    b"  docs/providers.md\n  docs/models.md\n"
)


def run(argv: Sequence[str], program: str) -> NoReturn:
    """Run one command line. `program` is the path of the program: its script, or its recording, stands beside it."""
    fill_standard_places()
    try:
        options = parse(argv)
        script, recording = _parts(program)
        if options.version:
            os.write(1, f"{script['version']}\n".encode())
            os._exit(0)
        log = Log(os.path.join(os.path.dirname(program), script["log"]) if script["log"] else "")
        log.start(argv)
        _serve(options, script, recording, log)
    except (Refused, Unusable, ValueError, OSError) as error:
        words = str(error) if str(error).startswith("Error") else f"Error: {error}"
        os.write(2, f"{words}\n".encode(errors="replace"))
        os._exit(1)


def _serve(options: Options, script: dict[str, Any], recording: str | None, log: Log) -> NoReturn:
    process = Process(script, log)

    def actor() -> Actor:
        if recording is not None:
            return Replay(process, read(recording))
        if not script["model"]:
            os.write(2, NO_MODELS)
        cwd = os.getcwd()
        own_place = options.session is None and not options.no_session
        path = default_path(os.environ, cwd) if own_place else options.session
        model = (options.provider, options.model)
        session = Session(None if options.no_session else path, cwd, model, own_place=own_place)
        if options.name is not None:
            session.rename(options.name)
        return Agent(process, script, options, session)

    process.run(actor)


def _parts(program: str) -> tuple[dict[str, Any], str | None]:
    """The script with all its keys, and the path of a recording if one is to be played."""
    recording = os.environ.get(REPLAY_VARIABLE) or f"{program}.replay.jsonl"
    given = os.environ.get(SCRIPT_VARIABLE)
    with open(given or f"{program}.script.json", "rb") as file:
        data = file.read()
    if given:
        from .script import complete

        if given.endswith(".toml"):
            import tomllib

            return complete(tomllib.loads(data.decode())), None
        return complete(json.loads(data)), None
    script: dict[str, Any] = json.loads(data)
    return script, recording if os.path.exists(recording) else None
