"""The floor of all round trips: an `asyncio.Protocol` that sends back what it gets, in a process of its own."""

import asyncio
import sys
from typing import cast

from hc_sim.bench.seats import sit


class Echo(asyncio.Protocol):
    """Sends back what it gets."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Send it back."""
        self._transport.write(data)


async def serve(path: str) -> None:
    """Listen at `path` until stdin ends."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    loop.add_reader(0, over.set)
    server = await loop.create_unix_server(Echo, path)
    print("ready", flush=True)  # noqa: T201 - the word that the starting process waits for
    await over.wait()
    server.close()


if __name__ == "__main__":
    sit("server")
    asyncio.run(serve(sys.argv[1]))
