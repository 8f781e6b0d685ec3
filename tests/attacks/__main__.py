"""python -m tests.attacks: run all attacks against the bars, and write what they cost."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.attacks import page
from tests.attacks.broker_process import LONGEST_STALL, TOLLS
from tests.attacks.size import WHOLE

BAR = 0.1
"""Seconds; `make test` allows more, since a busy machine takes longer for the same work."""


def main() -> int:
    """Return 0 where every attack stayed below the bars, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks")
    parser.add_argument("--nightly", action="store_true", help="write docs/reliability.md")
    is_written = parser.parse_args().nightly
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "tolls"
        os.environ[TOLLS], os.environ[LONGEST_STALL] = str(path), str(BAR)
        os.environ[WHOLE] = ""
        start, failures = time.monotonic(), _Failures()
        pytest.main(["-q", "-n", "0", "-m", "", str(Path(__file__).parent)], plugins=[failures])
        seconds, lines = time.monotonic() - start, page.read(path)
    if is_written:
        page.write(lines, failures.count, seconds)
    return 1 if failures.count else 0


class _Failures:
    """Counts tests that failed."""

    count = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.count += report.failed


if __name__ == "__main__":
    sys.exit(main())
