"""The documents of a core: named JSON values, written by compare-and-set, and copies of them that lag behind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hc_sim.core.calls import Handler
from hc_sim.core.events import tell_document
from hc_sim.core.world import World
from hc_sim.faults import DocumentFault
from hc_sim.model import DocGetParams, DocSetParams

MAX_NAME_BYTES = 256

Version = int | str


@dataclass(slots=True)
class Kept:
    """A document as the core keeps it, the state before its last write, and how its readers see it."""

    version: Version
    value: Any
    older: tuple[Version, Any] | None = None
    written_ms: int = 0
    looks: int = 0
    """How often it was read since the last write."""
    manner: DocumentFault = field(default_factory=lambda: DocumentFault(name=""))

    def seen(self, now: int) -> tuple[Version, Any]:
        """Version and value as a reader sees them now."""
        if self.older is None:
            return self.version, self.value
        manner = self.manner
        stale = (
            manner.mirror == "never"
            or (manner.mirror == "late" and now < self.written_ms + manner.mirror_ms)
            or (manner.mirror == "flaps" and self.looks == 2)
        )
        return self.older if stale else (self.version, self.value)


def get(world: World, params: DocGetParams, now: int, conn: int) -> Any:
    """`doc.get`: value and version."""
    kept = world.documents.get(params.name)
    if kept is None:
        raise world.refusal("no_such_document", f'no document "{params.name[:100]}"')
    kept.looks += 1
    version, value = kept.seen(now)
    return {"name": params.name, "version": _shown(world, kept, version), "value": value}


def set_(world: World, params: DocSetParams, now: int, conn: int) -> Any:
    """`doc.set`: replace the whole value if the version is still the given one; without a version, create it."""
    profile = world.profile
    if not params.name or len(params.name.encode()) > MAX_NAME_BYTES:
        raise world.refusal("invalid_params", f"name of a document must be 1 to {MAX_NAME_BYTES} bytes")
    kept = world.documents.get(params.name)
    if kept is None:
        if params.version is not None:
            raise world.refusal("version_conflict", f'no document "{params.name}"', version=None)
        if not profile.doc_create:
            raise world.refusal("no_such_document", f'no document "{params.name}"', "documents are not created here")
        if len(world.documents) >= profile.max_documents:
            raise world.refusal("limit_reached", f"there are {profile.max_documents} documents already")
    else:
        current = _shown(world, kept, kept.version)
        if current is None or type(params.version) is not type(current) or params.version != current:
            message = f'document "{params.name}" is at version {current}'
            raise world.refusal("version_conflict", message, version=current)
    if len(msgspec.json.encode(params.value)) > profile.max_document_bytes:
        raise world.refusal("limit_reached", f"the value is larger than {profile.max_document_bytes} bytes")
    kept = write(world, params.name, params.value, now)
    return {"name": params.name, "version": _shown(world, kept, kept.version)}


def write(world: World, name: str, value: Any, now: int, version: Version | None = None) -> Kept:
    """Put a value into a document, whoever does it; without a `version` it gets the next one."""
    kept = world.documents.get(name)
    if kept is None:
        kept = world.documents[name] = Kept(world.profile.doc_first if version is None else version, value)
    else:
        if kept.manner.mirror != "never" or kept.older is None:
            kept.older = (kept.version, kept.value)
        kept.version = _next(kept.version) if version is None else version
        kept.value = value
    kept.written_ms, kept.looks = now, 0
    tell_document(world, name, str(kept.version) if world.profile.doc_version == "string" else kept.version)
    return kept


def document_fault(world: World, fault: DocumentFault, now: int) -> None:
    """A document is there as planned, or another client writes it."""
    kept = write(world, fault.name, fault.value, now, fault.version)
    kept.manner = fault


def _next(version: Version) -> Version:
    if isinstance(version, int):
        return version + 1
    return str(int(version) + 1) if version.isdecimal() else f"{version}'"


def _shown(world: World, kept: Kept, version: Version) -> Version | None:
    if kept.manner.null_version:
        return None
    return str(version) if world.profile.doc_version == "string" else version


DOCUMENT_CALLS: Mapping[str, Handler] = {"doc.get": get, "doc.set": set_}
