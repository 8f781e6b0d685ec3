"""docs/quickstart.md can be followed: its commands run in order, and print what it shows.

Nothing in them is deprecated.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.quickstart import SECONDS, Reader, steps
from tests.spark.servers import quick_environment
from tests.strict_warnings import strict_environment

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(2 * SECONDS),
]


def test_every_step_prints_what_the_page_shows(tmp_path: Path) -> None:
    assert len(steps()) == 7
    variables = quick_environment() | strict_environment()
    reader = Reader(Path(sys.executable), tmp_path, variables)
    with reader.broker() as started:
        assert "ready after" in started.stderr
        for step in steps():
            reader.run(step)
