"""What the terminal backend contract names in a pi-legion checkout: paths, variables, modes. Taken from its text."""

from typing import Final

FROZEN_TESTS: Final = (
    "test/unit/worktree-centurion-only.test.ts",
    "test/unit/launch-worktree-probe.test.ts",
    "test/unit/spawn-mode-arbitration.test.ts",
    "test/unit/teams.test.ts",
)
"""I1: the four tests that nobody touches."""
WORKTREE: Final = "src/runs/worktree.ts"
"""I2: creation, preparation and cleaning up of worktrees, which nobody edits."""
CREATED: Final = (
    "src/hc/client.ts",
    "src/supervisor/terminal-supervisor.ts",
    "test/unit/terminal-supervisor.test.ts",
    "test/unit/terminal-arbitration.test.ts",
)
"""Files that the contract has somebody create."""
MODIFIED: Final = (
    "src/shared/types.ts",
    "src/runs/orchestrator.ts",
    "src/supervisor/routing-supervisor.ts",
    "index.ts",
)
"""Files that the contract lets somebody modify freely."""
PACKAGE: Final = "package.json"
"""Its `test*` scripts may be changed, to clear `MARKERS` (amendment A1); nothing else of it."""
MODES_FILE: Final = "src/shared/types.ts"
MODES_NAME: Final = "SPAWN_MODES"
MODE_TYPE: Final = "SpawnMode"
NEW_MODE: Final = "terminal"
OLD_MODES: Final = ("inprocess", "rpc")
"""I4: where the modes are listed, what list and type are called, and the modes before and after."""
MARKERS: Final = ("HC_TERMINAL_SOCKET", "HC_TERMINAL_ID")
"""D2, A1: the two variables that tell a program that it runs inside hc."""
CARD_FIELD: Final = "spawnMode"
"""D13: the field that no card may have."""
LAUNCH_FILES: Final = ("src/runs/orchestrator.ts", "index.ts")
LAUNCH_FOLDERS: Final = ("src/supervisor/", "src/hc/")
"""I3: where the launch path begins. Our reading: every module that the contract names for starting a child."""
TEST_FOLDERS: Final = ("test/", "tests/", "__tests__/", "fixtures/")
"""Folders, at any depth, that hold tests and their material: no launch path, no cards in use, no maps to complete."""


def is_test(path: str) -> bool:
    """Whether a path belongs to tests rather than to the product."""
    padded = f"/{path}"
    name = path.rpartition("/")[2]
    return any(f"/{folder}" in padded for folder in TEST_FOLDERS) or ".test." in name or ".spec." in name


def is_launch(path: str) -> bool:
    """Whether the launch path begins in this file (I3)."""
    return path in LAUNCH_FILES or (path.startswith(LAUNCH_FOLDERS) and not is_test(path))
