"""Hosts: where a system under test runs. `memory` on virtual time, `socket` with real processes in real time."""

from contracts.hosts.folder import Folder, world_folder
from contracts.hosts.memory import MemoryHost, MemoryLoop
from contracts.hosts.socket import SocketHost
from contracts.hosts.world import Built, WorldError, build

__all__ = ["Built", "Folder", "MemoryHost", "MemoryLoop", "SocketHost", "WorldError", "build", "world_folder"]
