"""A `limit` lets Spark hang up on the workers; nobody is shown a traceback for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.store import BlockingMessageStore, Message
from tests.spark.servers import quick_environment

pytestmark = [pytest.mark.spark]

PROGRAM = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = spark.read.format("rocketmq").load(sys.argv[1])
print([len(frame.limit(count).collect()) for count in (1, 3)], len(frame.take(2)))
spark.stop()
"""


def test_a_limit_leaves_no_traceback(tmp_path: Path) -> None:
    with BlockingMessageStore.open(tmp_path / "store") as live:
        for _ in range(20_000):  # more than the sockets' buffers take
            live.put(Message("A", bytes(1000)))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, tmp_path / "store"],
        # Spark's own default is the first `python3` of PATH, which may be another one.
        env=os.environ | quick_environment() | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "[1, 3] 2"
    assert "Traceback" not in ran.stderr, ran.stderr
