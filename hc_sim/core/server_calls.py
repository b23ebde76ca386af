"""The methods about the core itself: hello, discovery, status."""

from collections.abc import Mapping
from typing import Any

from hc_sim.core.calls import Handler
from hc_sim.core.world import World
from hc_sim.model import HelloParams, Nothing
from hc_sim.openrpc import openrpc


def hello(world: World, params: HelloParams, now: int, conn: int) -> Any:
    """`hello`: greet the connection and say which core this is."""
    profile = world.profile
    if params.generation not in (None, profile.generation) and profile.refuse_other_generation:
        message = f"this core speaks generation {profile.generation}, not {params.generation}"
        raise world.refusal("other_generation", message)
    world.greeted.add(conn)
    result: dict[str, Any] = {
        "core_id": world.core_id,
        "generation": profile.generation,
        "pid": profile.pid,
        "version": profile.version,
    }
    for member, aliases in profile.hello_aliases.items():
        result.update({alias: result[member] for alias in aliases if member in result})
    return {**result, **profile.hello_extra}


def discover(world: World, params: Nothing, now: int, conn: int) -> Any:
    """`rpc.discover`: the OpenRPC document of this core."""
    return openrpc(world.profile)


def server_status(world: World, params: Nothing, now: int, conn: int) -> Any:
    """`server.status`: identity, uptime and counts."""
    return {
        "core_id": world.core_id,
        "finished": len(world.table) - world.table.live_count,
        "generation": world.profile.generation,
        "pid": world.profile.pid,
        "running": world.table.live_count,
        "uptime_ms": now - world.up_since,
        "version": world.profile.version,
    }


SERVER_CALLS: Mapping[str, Handler] = {"hello": hello, "rpc.discover": discover, "server.status": server_status}
