"""What becomes of a question that a child asks: the parent's policy, apart from pi's own tool approval. Pure.

    asked                     forward          auto-approve  notify
    confirm                   to the parent    yes           the parent is told, then cancel
    select, input, editor     to the parent    cancel        the parent is told, then cancel
    notices                   nothing          nothing       nothing
    anything unknown          cancel           cancel        cancel

A choice or a text cannot be approved, only given: where nobody gives it, the question is cancelled and the run goes on.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from legion_terminal.rpc.messages import Dialog
from legion_terminal.types import OnBlocked

POLICIES: Final[tuple[OnBlocked, ...]] = get_args(OnBlocked)
QUESTIONS: Final = frozenset(("confirm", "select", "input", "editor"))
NOTICES: Final = frozenset(("notify", "setStatus", "setWidget", "setTitle", "set_editor_text"))
MAX_OPEN: Final = 64
"""How many questions of one child can be open; further ones are cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogAnswer:
    """What the parent says to a question: yes or no to a confirm, a text to the others, or neither (a cancel)."""

    confirmed: bool | None = None
    value: str | None = None


CANCEL: Final = DialogAnswer()

Move = Literal["nothing", "approve", "cancel", "tell-and-cancel", "forward"]


def treat(policy: OnBlocked, dialog: Dialog) -> Move:
    """What to do with a dialog under a policy."""
    if dialog.method in NOTICES:
        return "nothing"
    if dialog.method not in QUESTIONS:
        return "cancel"
    match policy:
        case "forward":
            return "forward"
        case "auto-approve":
            return "approve" if dialog.method == "confirm" else "cancel"
        case "notify":
            return "tell-and-cancel"


def reply(dialog: Dialog, answer: DialogAnswer) -> dict[str, Any]:
    """The line that answers a dialog. An answer of the wrong kind (a text for a yes or no) is a cancel."""
    head = {"type": "extension_ui_response", "id": dialog.id}
    if dialog.method == "confirm" and answer.confirmed is not None:
        return {**head, "confirmed": answer.confirmed}
    if dialog.method in QUESTIONS and dialog.method != "confirm" and answer.value is not None:
        return {**head, "value": answer.value}
    return {**head, "cancelled": True}
