"""The socket host: a real Unix socket, a real `hc connect` process for each link, real time."""

import asyncio
import contextlib

import msgspec

from contracts.hosts.headless import install_headless
from contracts.hosts.world import Built, occupy, up_after_ms
from hc_sim.programs.faulty_hc import install_faulty_hc
from hc_sim.programs.install import install_hc
from hc_sim.server import UnixServer

EXITS = "#!/bin/sh\necho 'hc: this installation is broken' >&2\nexit 3\n"


class SocketHost:
    """Serves a built world at its socket path, and puts the executable that HC_BIN names in its place."""

    def __init__(self, built: Built) -> None:
        self._built = built
        self._server: UnixServer | None = None
        self._later: asyncio.Task[None] | None = None

    connect = None
    """The supervisor starts its bridges itself."""

    async def start(self) -> None:
        """Install the executables, and listen when the world says that the core is up. Raises `WorldError`."""
        self._install()
        install_headless(self._built.folder, self._built.world)
        occupy(self._built.folder.socket, self._built.world.core)
        up_at = up_after_ms(self._built.world.core)
        if up_at == 0:
            await self._listen()
        elif up_at is not None:
            self._later = asyncio.create_task(self._listen(up_at), name="host: core comes up later")

    async def restart(self, ms: int) -> None:
        """Close the listener and every connection, listen to nobody for so long, then listen again."""
        await self._close_server()
        await self._listen(ms)

    async def stop(self) -> None:
        """Stop listening and remove the socket."""
        if self._later is not None:
            self._later.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._later
        await self._close_server()

    def _install(self) -> None:
        world, programs = self._built.world, self._built.folder.programs
        hc = programs / "hc"
        if world.hc == "exits":
            hc.write_text(EXITS)
            hc.chmod(0o755)
        elif world.hc != "missing":
            if world.bridge:
                install_faulty_hc(programs, [msgspec.structs.asdict(bridge) for bridge in world.bridge])
            else:
                install_hc(programs)
            if world.hc == "not-executable":
                hc.chmod(0o644)

    async def _listen(self, after_ms: int = 0) -> None:
        await asyncio.sleep(after_ms / 1_000)
        self._server = UnixServer(self._built.driver, self._built.folder.socket)
        await self._server.start()

    async def _close_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.close()
