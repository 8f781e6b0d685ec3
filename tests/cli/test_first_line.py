"""A command's first line comes before the imports that take long, so that nobody takes it for dead.

Results in JSON count as a line, and so do errors: who gets one at once need not wait.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mqlake.cli.app import COMMANDS, KAFKA_COMMANDS
from tests.golden import store
from tests.golden_kafka import log_directory
from tests.peer.rocketmq_cluster import free_ports

HEAVY = ("llvmlite", "numba", "numpy", "pandas", "py4j", "pyarrow", "pyspark", "rich")

PROGRAM = f"""
import io, json, os, sys

class FirstLine(io.RawIOBase):
    def write(self, written):
        if written.strip():
            loaded = [name for name in {HEAVY} if name in sys.modules]
            os.write(OUT, json.dumps([bytes(written).decode(), loaded]).encode())
            os._exit(0)
        return len(written)

    def isatty(self):
        return "doctor" in sys.argv  # It shows no progress without a terminal.

    def writable(self):
        return True

OUT = os.dup(1)
sys.stdout, sys.stderr = (
    io.TextIOWrapper(FirstLine(), "utf-8", write_through=True) for _ in range(2)
)
from mqlake.cli.app import run
run(sys.argv[1:])
"""

LINES = {
    "inspect STORE --json": '{"store"',
    "query STORE --topic TopicA --queue 0 --offset 3 --json": '{"topic"',
    "retention STORE --plan --json": '{"store"',
    "verify STORE --progress": "mqlake: starting Spark",
    "verify STORE --engine local --progress": "mqlake: loading kernels",
    "rebuild STORE --out NEW --progress": "mqlake: starting Spark",
    "rebuild STORE --out NEW --engine local --progress": "mqlake: loading kernels",
    "export STORE --out NEW --progress": "mqlake: starting Spark",
    "export STORE --out NEW --engine local --progress": "mqlake: loading kernels",
    "convert STORE --to kafka --out NEW --progress": "mqlake: starting Spark",
    "archive STORE --to NEW --progress": "mqlake: loading kernels",
    "follow STORE --to store --progress": "mqlake: starting Spark",
    "follow STORE --to delta --out NEW --progress": "mqlake: starting Spark",
    "follow STORE --to delta --out NEW --decode json:x --progress": "mqlake: starting Spark",
    "convert KAFKA --to rocketmq --out NEW --progress": "mqlake: starting Spark",
    "doctor": "mqlake: checking this machine",
    "produce orders -n NOBODY": "mqlake: ",
    "consume orders -n NOBODY": "mqlake: ",
    "tail orders -n NOBODY": "mqlake: ",
    "admin topicList -n NOBODY": "mqlake: ",
    "replica NOBODY --store NEW --once": " loading the replica",
    "broker --store NEW": " loading the broker",
    "proxy": " loading the proxy",
    "console": " loading the console",
    "namesrv --port FREE": " name server listens on ",
    "kafka inspect KAFKA --json": "{",
    "kafka dump KAFKA --json": "{",
    "kafka lookup KAFKA --offset 0 --json": "{",
    "kafka verify KAFKA --json": "{",
    "kafka rebuild-index COPY --json": "{",
    "kafka recover COPY --json": "{",
}


@pytest.mark.parametrize("line", LINES)
def test_nothing_heavy_is_imported_before_the_first_line(line: str, tmp_path: Path) -> None:
    places = {
        "STORE": str(store("rmq5-clean").path),
        "KAFKA": str(log_directory()),
        "COPY": str(shutil.copytree(log_directory() / "big-ts-0", tmp_path / "big-ts-0")),
        "NEW": str(tmp_path / "new"),
        "NOBODY": "127.0.0.1:1",
        "FREE": str(*free_ports(1)),
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, *(places.get(word, word) for word in line.split())],
        capture_output=True,
        check=True,
        input=b"a message\n",
    )
    written, loaded = json.loads(ran.stdout)
    assert LINES[line] in written
    assert loaded == []


def test_every_command_has_a_line() -> None:
    tried = {line.split()[0] for line in LINES}
    assert tried == {*COMMANDS, "kafka", "admin"}
    assert {line.split()[1] for line in LINES if line.startswith("kafka")} == set(KAFKA_COMMANDS)
