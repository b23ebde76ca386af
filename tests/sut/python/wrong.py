"""The driver of the Python supervisor with one rule broken: a done settles a wait whichever prompt it answers."""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import driver

from legion_terminal import settle

ANY_DONE = (("finished", "any", "any", True), ("any", "any", "done", True), ("any", "any", "any", False))

if __name__ == "__main__":
    settle.SETTLE_ROWS = ANY_DONE  # type: ignore[misc,assignment]
    asyncio.run(driver.main())
