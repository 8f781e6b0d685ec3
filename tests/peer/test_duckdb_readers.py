"""DuckDB reads the tables of `follow` with its own extensions for Delta Lake and Iceberg.

Packages have these extensions for an older DuckDB than mqlake's tests use, so it reads them in an
environment of its own.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mqlake.lake.options import Format
from tests.peer.followed_table import table
from tests.peer.python_build import PythonMissingError, environment

pytestmark = [pytest.mark.peer, pytest.mark.nightly]  # tests/lake reads them in each run

READERS = Path(__file__).parent / "duckdb_readers"


@pytest.mark.parametrize("format_", [Format.DELTA, Format.ICEBERG])
def test_duckdbs_own_reader_reads_a_table_of_follow(tmp_path: Path, format_: Format) -> None:
    path = tmp_path / "messages"
    expected = table(path, format_)
    try:
        python = environment(READERS)
    except PythonMissingError as reason:
        pytest.skip(f"without DuckDB's extensions: {reason}")
    command = [str(python), str(READERS / "read.py"), format_.value, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [tuple(json.loads(line)) for line in done.stdout.splitlines()] == expected
