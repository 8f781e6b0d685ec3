"""Spark reads the tables of `follow` with Delta Lake's and Iceberg's own jars.

Iceberg has no jar for the Spark that mqlake runs on yet: an older Spark in an environment of its
own reads its tables, through Iceberg's own JDBC catalog.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.lake.options import Format
from tests.peer.followed_table import Read, table
from tests.peer.java_build import JavaMissingError, jars
from tests.peer.python_build import PythonMissingError, environment

pytestmark = [pytest.mark.peer, pytest.mark.nightly]  # tests/lake reads them in each run

HERE = Path(__file__).parent
READERS = HERE / "spark_readers"


def read(python: Path, format_: Format, path: Path, source: str) -> Read:
    """Return what a Spark reads."""
    try:
        archives = sorted(jars(HERE / source).glob("*.jar"))
    except JavaMissingError as reason:
        pytest.skip(f"without {source}: {reason}")
    found = ",".join(map(str, archives))
    command = [str(python), str(READERS / "read.py"), format_.value, str(path), found]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def test_sparks_delta_reader_reads_a_table_of_follow(tmp_path: Path) -> None:
    path = tmp_path / "messages"
    expected = table(path, Format.DELTA)
    assert read(Path(sys.executable), Format.DELTA, path, "spark_delta") == expected


def test_sparks_iceberg_reader_reads_a_table_of_follow(tmp_path: Path) -> None:
    path = tmp_path / "messages"
    expected = table(path, Format.ICEBERG)
    try:
        python = environment(READERS)
    except PythonMissingError as reason:
        pytest.skip(f"without an older Spark: {reason}")
    assert read(python, Format.ICEBERG, path, "spark_iceberg") == expected
