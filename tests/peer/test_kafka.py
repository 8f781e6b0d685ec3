"""A real broker on what mqlake wrote, and mqlake on what a real broker wrote."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.formats.kafka.compression import Compression
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.kafka.isolation import Isolation
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.settings import LogSettings
from mqlake.kafka.write.owned_log_directory import OwnedLogDirectory
from mqlake.storage.local import LocalDirectory
from tests.peer.java_build import JavaMissingError
from tests.peer.java_programs import NEWEST_KAFKA
from tests.peer.kafka_clients import Kafka, Rows, read

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]

RELEASES = [NEWEST_KAFKA, pytest.param("4.3.1", marks=pytest.mark.nightly)]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module", params=RELEASES)
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kafka]:
    """One broker for all tests: each start takes seconds."""
    try:
        peer = Kafka(tmp_path_factory.mktemp("kafka"), request.param)
    except JavaMissingError as reason:
        pytest.skip(f"without the real Kafka: {reason}")
    yield peer
    peer.close()


def records(count: int, first: int) -> list[NewRecord]:
    source = random.Random(first)
    keys = (None, b"", b"key")
    headers = ((), (("name", b"value"), ("имя", None), ("", b"")))
    return [
        NewRecord(
            1_700_000_000_000 + first + source.randrange(50),
            source.choice(keys),
            source.choice((None, source.randbytes(source.randrange(300)))),
            source.choice(headers),
        )
        for _ in range(count)
    ]


def write(logs: Path, topic: str) -> Rows:
    """Append batches of every codec, in several segments, to a partition that Kafka has made."""
    settings = LogSettings(segment_bytes=65_536, index_interval_bytes=1024)
    with OwnedLogDirectory(logs) as directory:
        partition = directory.partition(topic, 0, settings)
        for number in range(250):
            codec = Compression[CODECS[number % len(CODECS)].upper()]
            partition.append(records(1 + number % 20, 10 * number), compression=codec)
        assert len(partition.segments) > 2
    return read(logs, topic)


def test_both_ways(kafka: Kafka) -> None:
    """Kafka makes the topics; each side writes, and reads what the other wrote."""
    kafka.broker.start()
    for topic in ("written", "appended", "transactions", *CODECS):
        kafka.create(topic)
    for codec in CODECS:
        kafka.produce(codec, 300, codec)
    kafka.produce("appended", 300, "none")
    kafka.produce("transactions", 120, "transactions")
    seen = {topic: kafka.consume(topic) for topic in ("appended", *CODECS)}
    seen_isolated = {level: kafka.consume("transactions", level) for level in Isolation}
    kafka.broker.stop()

    for topic, rows in seen.items():
        assert read(kafka.logs, topic) == rows
        assert len(rows) == 300
    for level, rows in seen_isolated.items():
        assert read(kafka.logs, "transactions", level) == rows
    assert len(seen_isolated[Isolation.READ_COMMITTED]) < 120

    written = write(kafka.logs, "written")
    appended = write(kafka.logs, "appended")
    assert len(appended) == 300 + len(written)
    kafka.broker.start()
    assert kafka.consume("written") == written
    assert kafka.consume("appended") == appended
    assert kafka.consume("transactions", Isolation.READ_COMMITTED) == read(
        kafka.logs, "transactions", Isolation.READ_COMMITTED
    )
    kafka.produce("written", 100, "zstd")
    more = kafka.consume("written")
    assert more[: len(written)] == written
    assert len(more) == len(written) + 100
    # While the broker runs.
    assert read(kafka.logs, "written") == more


def test_a_crash(kafka: Kafka) -> None:
    """What mqlake recovers, Kafka takes as stopped in good order, and goes on with."""
    kafka.broker.start()
    kafka.create("torn")
    kafka.produce("torn", 1000, "none")
    whole = kafka.consume("torn")
    kafka.broker.kill()
    last = max((kafka.logs / "torn-0").glob("*.log"))
    with last.open("r+b") as log:
        log.truncate(last.stat().st_size - 10)
    with OwnedLogDirectory(kafka.logs) as logs:
        for name in LogDirectory(LocalDirectory(kafka.logs)).partitions():
            if name.topic != "__cluster_metadata":
                logs.partition(name.topic, name.partition)
    left = read(kafka.logs, "torn")
    assert left == whole[: len(left)]
    assert 0 < len(whole) - len(left) <= 50
    kafka.broker.start()
    assert kafka.consume("torn") == left
    kafka.produce("torn", 10, "gzip")
    assert len(kafka.consume("torn")) == len(left) + 10
    kafka.broker.stop()
    assert len(read(kafka.logs, "torn")) == len(left) + 10
