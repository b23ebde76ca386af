"""Settings that every test shares: repeatable properties, and no trace of a real hc around."""

import os

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester", "legion_checkouts"]

settings.register_profile("default", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(autouse=True)
def _hermetic(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("HC_", "PI_SUBAGENT_"))]:
        monkeypatch.delenv(name)
