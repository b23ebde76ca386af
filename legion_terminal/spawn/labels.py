"""D6: the labels that make a child visible beside its parent."""

from collections.abc import Mapping
from typing import Final

SPACE_LABEL: Final = "herdr.space"
ROLE_LABEL: Final = "legion.role"
ROLE: Final = "centurion"


def child_labels(parent_labels: Mapping[str, object] | None) -> dict[str, str]:
    """The child's labels: its role, and the parent's space when that is known (D6).

    `parent_labels` is what `terminal.get` showed of the parent, None when it could not be read. Nothing else of the
    parent is copied (a child gets a tab of its own), and a space that is missing, empty or no text is left out, never
    made up.
    """
    labels = {ROLE_LABEL: ROLE}
    space = parent_labels.get(SPACE_LABEL) if parent_labels is not None else None
    if isinstance(space, str) and space:
        labels[SPACE_LABEL] = space
    return labels
