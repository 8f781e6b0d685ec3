"""Rows are messages as Java's consumers hand them out, in all columns and for every kind.

Java clients of both generations send compressed, batched, delayed and transactional messages, and
consume them. One Java process of each release does all of that.
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mqlake.formats.sys_flag import COMPRESSED, COMPRESSION_TYPE_MASK
from mqlake.query.live.connection import close_connections
from mqlake.query.store.columns import COLUMNS
from mqlake.spark.launch import QUICK_START
from mqlake.testing import broker
from tests.client.servers import create_topic
from tests.peer.java_build import JavaMissingError, build
from tests.peer.java_start import java
from tests.peer.rocketmq_client import NEWEST, NEWEST_4
from tests.peer.rocketmq_cluster import Cluster
from tests.query.live import rows as of_cluster
from tests.query.store import rows as of_directory

pytestmark = [
    pytest.mark.peer,
    pytest.mark.timeout(1200),
]

SOURCE = Path(__file__).parent / "rocketmq_rows"
SETTINGS = {"brokerName": "broker-a", "mappedFileSizeCommitLog": 1 << 20}
OF_THE_CONSUMER = ("MIN_OFFSET", "MAX_OFFSET", "CONSUME_START_TIME")
"""Properties that a Java consumer adds to what it hands out."""
QUEUES, MESSAGES = 2, 10

Row = dict[str, Any]


@contextmanager
def running(side: str, directory: Path) -> Iterator[tuple[str, str]]:
    """Run a broker over `directory/store`; give the addresses of its name server and its own."""
    if side == "mqlake":
        with broker(directory / "store", **SETTINGS) as ours:
            yield ours.name_server, ours.address
        return
    theirs = Cluster(directory, directory / "store", SETTINGS)
    theirs.start()
    try:
        yield theirs.names, theirs.broker
    finally:
        theirs.kill()


def consumed(path: str, names: str, topic: str, directory: Path) -> list[Row]:
    """Let Java clients send and consume; return what was consumed, by physical offset."""
    options = [*QUICK_START, "-Xmx256m", f"-Duser.home={directory}"]
    options += ["-Drocketmq.client.logUseSlf4j=false"]
    command = java(path, options, "Rows", names, topic)
    with (directory / f"{topic}.stderr").open("wb") as errors:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, check=True)
    by_offset = {row["physicalOffset"]: row for row in json.loads(done.stdout)}
    return [as_row(by_offset[offset]) for offset in sorted(by_offset)]


def as_row(message: Row) -> Row:
    """Give a message of Java's the form of a row."""
    properties = message["properties"]
    return message | {
        "body": base64.b64decode(message["body"]),
        "properties": {
            name: text for name, text in properties.items() if name not in OF_THE_CONSUMER
        },
        "tags": message.get("tags"),
        "keys": message.get("keys", "").split(),
        # Java leaves the bit in place although the body is decompressed.
        "sysFlag": message["sysFlag"] & ~COMPRESSED,
    }


def compressions(store: Path, topic: str) -> set[int]:
    """Return the numbers of the codecs of all compressed records: 1 LZ4, 2 Zstandard, 3 zlib."""
    flags = [
        row["sysFlag"] for row in of_directory.batch_rows(store, subscribe=topic, decompress=False)
    ]
    return {(each & COMPRESSION_TYPE_MASK) >> 8 for each in flags if each & COMPRESSED}


@pytest.mark.parametrize("side", ["mqlake", pytest.param("rocketmq", marks=pytest.mark.nightly)])
def test_rows_are_what_java_consumers_hand_out(side: str, tmp_path: Path) -> None:
    topics = {"Rows4": NEWEST_4, "Rows5": NEWEST}
    try:
        paths = [build(SOURCE, version) for version in topics.values()]
    except JavaMissingError as reason:
        pytest.skip(f"without stock clients: {reason}")
    with running(side, tmp_path) as (names, address), ThreadPoolExecutor(len(topics)) as threads:
        for topic in topics:
            asyncio.run(create_topic(address, topic, QUEUES))
        sending = [
            threads.submit(consumed, path, names, topic, tmp_path)
            for path, topic in zip(paths, topics, strict=True)
        ]
        for topic, program in zip(topics, sending, strict=True):
            found = program.result()
            assert len(found) == MESSAGES
            assert {*found[0]} == {*COLUMNS}
            live = of_cluster.batch_rows(names, subscribe=topic)
            stored = of_directory.batch_rows(
                tmp_path / "store", subscribe=topic, brokerName="broker-a"
            )
            for one, theirs in zip(live, found, strict=True):
                assert one == theirs, topic
            assert stored == live
            assert compressions(tmp_path / "store", topic) == {1, 2, 3}
        close_connections()
