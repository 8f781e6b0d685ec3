"""A `limit` lets Spark hang up on the workers; nobody is shown a traceback for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.store import BlockingMessageStore, Message
from tests.spark.servers import ROOT, quick_environment

pytestmark = [pytest.mark.spark]

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from tests.spark.interpreted import INTERPRETED

settings = {"spark.ui.enabled": "false", **INTERPRETED}
spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
frame = spark.read.format("rocketmq").load(sys.argv[1])
print(len(frame.limit(3).collect()), len(frame.take(2)))
spark.stop()
"""


def test_a_limit_leaves_no_traceback(tmp_path: Path) -> None:
    with BlockingMessageStore.open(tmp_path / "store") as live:
        for _ in range(2000):  # more than the sockets' buffers take
            live.put(Message("A", bytes(10_000)))
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, tmp_path / "store"],
        cwd=ROOT,
        # Spark's own default is the first `python3` of PATH, which may be another one.
        env=os.environ | quick_environment() | {"PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "3 2"
    assert "Traceback" not in ran.stderr, ran.stderr
