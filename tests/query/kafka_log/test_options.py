"""Options: names, defaults, and what contradicts what."""

from __future__ import annotations

from pathlib import Path

import pytest

from mqlake.errors import FormatError, StoreError
from mqlake.kafka.isolation import Isolation
from mqlake.query.kafka_log.options import read_options
from mqlake.query.kafka_log.plan import plan_batch
from tests import golden_kafka
from tests.golden_kafka import GoldenPartition
from tests.query.kafka_log.rows import batch_rows, options_of


def test_defaults_are_those_of_sparks_kafka_source() -> None:
    batch, stream = options_of("logs"), options_of("logs", streaming=True)
    assert (batch.starting.word, batch.ending.word) == ("earliest", "latest")
    assert stream.starting.word == "latest"
    assert batch.fail_on_data_loss
    assert stream.fail_on_data_loss
    assert batch.isolation is Isolation.READ_UNCOMMITTED
    assert "headers" not in batch.columns
    assert options_of("logs", includeHeaders="TRUE").columns[-1] == "headers"


def test_options_about_brokers_mean_nothing() -> None:
    given = {
        "path": "logs",
        "kafka.bootstrap.servers": "host:9092",
        "KAFKA.isolation.level": "read_committed",
        "kafkaConsumer.pollTimeoutMs": "1",
        "maxOffsetsPerTrigger": "3",
    }
    options = read_options(given, streaming=False)
    assert options.isolation is Isolation.READ_COMMITTED
    assert set(options.ignored) == {
        "kafka.bootstrap.servers",
        "kafkaConsumer.pollTimeoutMs",
        "maxOffsetsPerTrigger",
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"startingofset": "earliest"}, "no option 'startingofset'; the nearest is startingO"),
        ({"subscribe": "a", "assign": '{"a": [0]}'}, "assign and subscribe cannot be combined"),
        ({"isolation.level": "serializable"}, "not one of read_uncommitted, read_committed"),
        ({"columns": "offset,valeu"}, "no column 'valeu'; the nearest is value"),
        ({"startingOffsets": "latest"}, "a batch query cannot start at the latest offset"),
        (
            {"isolation.level": "read_committed", "kafka.isolation.level": "read_committed"},
            "are the same: give only one",
        ),
    ],
)
def test_wrong_options(given: dict[str, str], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_options({"path": "logs"} | given, streaming=False)


def test_no_path() -> None:
    with pytest.raises(FormatError, match="option path is missing: Kafka's log directory"):
        read_options({"subscribe": "a"})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"subscribe": "plain-none,no"}, StoreError, "topic 'no' does not exist"),
        ({"assign": '{"plain-none": [0, 7]}'}, StoreError, "partition plain-none-7 does not exist"),
        (
            {"subscribe": "txn", "startingOffsets": '{"empty": {"0": 1}}'},
            FormatError,
            "starting offsets name empty-0, which does not exist or is not subscribed to",
        ),
        (
            {"subscribe": "txn", "endingOffsets": '{"txn": {"0": 99999}}'},
            StoreError,
            "endingOffsets: txn-0 has offsets 0 to",
        ),
    ],
)
def test_what_is_not_there(options: dict[str, str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        plan_batch(options_of(golden_kafka.log_directory(), **options))


def test_no_log_directory(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no partition in it; path must be the log directory"):
        batch_rows(tmp_path)


def test_kafkas_own_topics_are_read_by_name_only() -> None:
    path = golden_kafka.log_directory()
    topics = {row["topic"] for row in batch_rows(path, columns="topic,partition,offset")}
    assert not [topic for topic in topics if topic.startswith("__")]
    own = next(name for name in golden_kafka.partitions() if name.startswith("__"))
    topic, number = own.rsplit("-", 1)
    assert batch_rows(path, assign=f'{{"{topic}": [{number}]}}')


def offsets(**options: str) -> list[int]:
    rows = batch_rows(
        golden_kafka.log_directory(), assign='{"plain-none": [0]}', columns="offset", **options
    )
    return [row["offset"] for row in rows]


def test_starting_and_ending_offsets() -> None:
    span = {
        "startingOffsets": '{"plain-none": {"0": 17}}',
        "endingOffsets": '{"plain-none": {"0": 1203}}',
    }
    assert offsets(**span) == list(range(17, 1203))
    assert offsets(startingOffsets='{"plain-none": {"0": -2}}')[0] == 0
    assert offsets(endingOffsets='{"plain-none": {"0": -1}}')[-1] == 2999


def test_starting_and_ending_times() -> None:
    """As Kafka's own consumer answered for times."""
    truth = GoldenPartition("plain-none-0").truth("offsets_for_times.json")
    asked = {one["timestamp"]: one["read_uncommitted"] for one in truth}
    times = [time for time, found in asked.items() if found][::7]
    assert len(times) > 3
    for time in times:
        found, _ = asked[time]
        assert offsets(startingTimestamp=str(time))[:1] == [found]
        assert offsets(endingTimestamp=str(time))[-1:] == ([found - 1] if found else [])


def test_damage(tmp_path: Path) -> None:
    golden = GoldenPartition("plain-none-0")
    path = golden.copy(tmp_path / golden.name)
    log = path / golden.logs[0].name
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    with pytest.raises(FormatError, match=f"{log.name}, byte 0: checksum"):
        batch_rows(tmp_path)
    rows = batch_rows(tmp_path, failOnDataLoss=False)
    assert 0 < 3000 - len(rows) < 100
