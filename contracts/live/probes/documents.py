"""Probes of documents. A core is not known to have a way to remove one, so they are written only when asked for."""

from typing import Any

from contracts.live.stage import Stage

NAME = "legion-contracts-live"
"""The one document that is ever written: the same in every run, empty afterwards."""


async def documents(stage: Stage) -> None:
    """Write, read, and write again with an old version. Needs leave to write, since what is written stays."""
    sheet = stage.sheet
    if not stage.documents:
        sheet.skipped["documents"] = f"documents are only written with --documents (one, {NAME}, stays)"
        return
    token = stage.corner.owner.token
    before = await stage.ask("doc.get", name=NAME)
    params: dict[str, Any] = {"name": NAME, "value": {"run": token}}
    if before.ok and isinstance(before.result, dict):
        params["version"] = before.result.get("version")
    first = await stage.peer.ask("doc.set", params)
    if not before.ok:
        sheet.learn("doc_create", first.ok)
        if not first.ok:  # a core that makes none is no conflict of versions
            for name in ("doc_version", "doc_first"):
                sheet.not_learned(name, "this core makes no document by a write without a version")
            return
    sheet.fact("document.write", "C8", first.ok, True, say="a document can be written")
    if not first.ok:
        sheet.error("version_conflict", first.error)
        return
    shown = await stage.ask("doc.get", name=NAME)
    result = shown.result if isinstance(shown.result, dict) else {}
    version = result.get("version")
    sheet.fact("document.value", "C8", result.get("value"), {"run": token}, say="a document is read as it was written")
    sheet.learn("doc_version", "string" if isinstance(version, str) else "integer")
    if not before.ok and str(version).isdecimal():
        sheet.learn("doc_first", int(str(version)))
    second = await stage.peer.ask("doc.set", {"name": NAME, "value": None, "version": version})
    sheet.fact("document.replace", "C8", second.ok, True, say="a document is replaced with its own version")
    now = await stage.ask("doc.get", name=NAME)
    newer = now.result.get("version") if isinstance(now.result, dict) else None
    sheet.fact("document.version", "C8", newer != version, True, say="each write gives a document another version")
    if newer == version:
        return
    stale = await stage.peer.ask("doc.set", {"name": NAME, "value": 0, "version": version})
    sheet.fact("document.conflict", "C8", not stale.ok, True, say="a write with an old version is refused")
    sheet.error("version_conflict", stale.error)
    if stale.ok:
        await stage.peer.ask("doc.set", {"name": NAME, "value": None, "version": newer})
