"""The programs in docs/live-store.md run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.strict_warnings import strict_environment

PAGE = Path(__file__).parents[2] / "docs" / "live-store.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_in_pages_run(number: int, tmp_path: Path) -> None:
    program = PROGRAMS[number].replace("/var/lib/mqlake", str(tmp_path / "store"))
    # The disk of a test may be slow.
    program = program.replace('"SYNC_FLUSH"', '"SYNC_FLUSH", "syncFlushTimeout": 60_000')
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **strict_environment()},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
