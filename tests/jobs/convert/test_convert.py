"""Conversions of golden stores and golden logs, there and back."""

from __future__ import annotations

import errno
import hashlib
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import JobError, MqlakeError, StoreError
from mqlake.formats import sys_flag
from mqlake.formats.inner_batch import FLAGS
from mqlake.formats.kafka.record_batch import NewRecord
from mqlake.formats.message_batch import encode_batch
from mqlake.jobs.convert import to_kafka as job_to_kafka
from mqlake.jobs.convert.mapping import PREFIX
from mqlake.jobs.convert.to_kafka import ConvertQueueJob, convert_queue, convert_to_kafka
from mqlake.jobs.convert.to_rocketmq import LogsJob, convert_to_rocketmq, write_store
from mqlake.jobs.convert.topics import LeftOut, for_kafka, for_rocketmq
from mqlake.jobs.local import LocalEngine
from mqlake.jobs.verify import verify
from mqlake.kafka.isolation import Isolation
from mqlake.kafka.log.log_directory import LogDirectory
from mqlake.kafka.verify.partition import verify_partition
from mqlake.kafka.write.owned_log_directory import OwnedLogDirectory
from mqlake.protocol.messages.body_compression import compress
from mqlake.storage.local import LocalDirectory
from mqlake.store import BlockingMessageStore, Message, StoreReader
from tests import golden_kafka
from tests.golden import store
from tests.store import test_inner_batches as batches
from tests.store.make_store import StoreMaker, write
from tests.store.record_crcs import without_crc

Queues = dict[tuple[str, int], list[Any]]

ENGINE = LocalEngine(2)


def read_logs(path: Path, isolation: Isolation = Isolation.READ_UNCOMMITTED) -> Queues:
    logs = LogDirectory(LocalDirectory(path))
    return {
        (name.topic, name.partition): read_partition(logs, name.topic, name.partition, isolation)
        for name in logs.partitions()
    }


def read_partition(
    logs: LogDirectory,
    topic: str,
    number: int,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> list[Any]:
    with logs.partition(topic, number) as partition:
        return [
            (one.offset, one.timestamp, one.key, one.value, list(one.headers))
            for one in partition.records(isolation=isolation)
        ]


def read_store(path: Path) -> Queues:
    with StoreReader.open(path) as reader:
        queues = [(topic, queue) for topic in reader.topics() for queue in reader.queues(topic)]
        return {name: reader.get(*name, reader.queue(*name)[0], 1 << 30).records for name in queues}


@pytest.fixture(scope="module")
def logs_of_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What rmq5-clean becomes."""
    out = tmp_path_factory.mktemp("converted") / "logs"
    convert_to_kafka(store("rmq5-clean").path, ENGINE, out=out)
    return out


def without_empty(queues: Queues) -> Queues:
    return {name: records for name, records in queues.items() if records}


@pytest.mark.parametrize(
    ("name", "topics"),
    [
        ("rmq49-clean", ()),
        ("rmq5-torn", ("TopicA", "TopicTags")),
        pytest.param("rmq5-torn", (), marks=pytest.mark.nightly),
    ],
)
def test_a_store_becomes_logs(name: str, topics: tuple[str, ...], tmp_path: Path) -> None:
    golden = store(name)
    expected: Queues = defaultdict(list)
    for message in golden.messages():
        topic, is_queued = message["topic"], sys_flag.is_queued(message["sysFlag"])
        if is_queued and for_kafka(topic) is None and (not topics or topic in topics):
            expected[topic, message["queueId"]].append(message)

    report = convert_to_kafka(golden.path, ENGINE, out=tmp_path / "logs", topics=topics)

    found = without_empty(read_logs(tmp_path / "logs"))
    assert set(found) == set(expected)
    assert report.records == sum(map(len, expected.values()))
    for queue, messages in expected.items():
        for record, message in zip(found[queue], messages, strict=True):
            is_same(record, message)


def is_same(record: tuple[Any, ...], message: dict[str, Any]) -> None:
    offset, timestamp, key, value, headers = record
    assert (offset, timestamp) == (message["queueOffset"], message["bornTimestamp"])
    assert hashlib.sha1(value).hexdigest() == message["bodySha1"]
    said = {name: text.decode() for name, text in headers}
    plain = {name: text for name, text in said.items() if not name.startswith(PREFIX)}
    if key is not None:
        plain["KEYS"] = key.decode()
    assert plain == message["properties"]
    for name in ("storeHost", "bornHost"):
        assert "/" + said[PREFIX + name] == message[name]
    for name, usual in (("storeTimestamp", timestamp), ("flag", 0), ("sysFlag", 0)):
        assert int(said.get(PREFIX + name, usual)) == message[name]


def test_new_logs_are_whole(logs_of_store: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(logs_of_store, tmp_path / "logs"))
    logs = LogDirectory(LocalDirectory(path))
    assert logs.is_clean
    for name in logs.partitions():
        with logs.partition(name.topic, name.partition) as partition:
            assert verify_partition(partition, deep=True).damage == []
    before = read_partition(logs, "TopicA", 0)
    with OwnedLogDirectory(path) as owned:
        partition = owned.partition("TopicA", 0)
        assert partition.cut == 0
        end = partition.log_end_offset
        assert partition.append([NewRecord(1, b"k", b"v")]) == end
    after = read_partition(logs, "TopicA", 0)
    assert after == [*before, (end, 1, b"k", b"v", [])]


def test_logs_become_a_store(tmp_path: Path) -> None:
    source = golden_kafka.log_directory()
    report = convert_to_rocketmq(source, ENGINE, out=tmp_path / "store")
    expected = without_empty(read_logs(source, Isolation.READ_COMMITTED))
    expected = {name: found for name, found in expected.items() if for_rocketmq(name[0]) is None}
    found = read_store(tmp_path / "store")
    assert {name: len(records) for name, records in found.items()} == {
        name: len(records) for name, records in expected.items()
    }
    for name, messages in found.items():
        assert [one.queue_offset for one in messages] == list(range(len(messages)))
        assert [one.body for one in messages] == [one[3] or b"" for one in expected[name]]
        assert [one.born_timestamp for one in messages] == [one[1] for one in expected[name]]
        keys = [one.properties.get("KEYS") for one in messages if one.properties.get("KEYS")]
        assert keys == [one[2].decode() for one in expected[name] if one[2]]
    log = sorted((one for some in found.values() for one in some), key=lambda m: m.physical_offset)
    times = [one.store_timestamp for one in log]
    assert times == sorted(times)
    checked = verify(tmp_path / "store", ENGINE)
    assert checked.ok
    assert checked.records == report.records == len(log)
    left_out = {one.topic for one in report.left_out}
    assert {topic for topic in left_out if not topic.startswith("__")} == set()
    assert (report.topics, report.partitions) == (25, 26)


def test_logs_come_back_from_a_store(tmp_path: Path) -> None:
    source = golden_kafka.log_directory()
    level = Isolation.READ_UNCOMMITTED
    convert_to_rocketmq(source, ENGINE, out=tmp_path / "store", isolation=level)
    convert_to_kafka(tmp_path / "store", ENGINE, out=tmp_path / "logs")
    expected = without_empty(read_logs(source))
    assert read_logs(tmp_path / "logs") == {
        name: records for name, records in expected.items() if for_rocketmq(name[0]) is None
    }


def test_a_store_comes_back_from_logs(logs_of_store: Path, tmp_path: Path) -> None:
    golden = store("rmq5-clean")
    convert_to_rocketmq(logs_of_store, ENGINE, out=tmp_path / "store")
    before, after = read_store(golden.path), read_store(tmp_path / "store")
    converted = [
        name for name in before if for_kafka(name[0]) is None and for_rocketmq(name[0]) is None
    ]
    assert len(converted) > 20
    for name in converted:
        assert list(map(_content, after.get(name, []))) == list(map(_content, before[name]))


def _content(message: Any) -> dict[str, Any]:
    """Return what does not say where in the log a message is."""
    found = {
        field: getattr(message, field)
        for field in message.__struct_fields__
        if field not in ("physical_offset", "size")
    }
    return found | {"properties": without_crc(message.properties)}


def test_only_the_topics_that_are_asked_for(tmp_path: Path) -> None:
    report = convert_to_kafka(
        store("rmq5-clean").path, ENGINE, out=tmp_path / "logs", topics=["TopicB", "TopicA"]
    )
    assert {topic for topic, _ in read_logs(tmp_path / "logs")} == {"TopicA", "TopicB"}
    assert report.left_out == []
    with pytest.raises(JobError, match="topic 'TopicZ' does not exist"):
        convert_to_kafka(store("rmq5-clean").path, ENGINE, out=tmp_path / "2", topics=["TopicZ"])
    with pytest.raises(JobError, match=r"topic '%RETRY%G_retry' cannot be converted: Kafka allows"):
        convert_to_kafka(
            store("rmq5-clean").path, ENGINE, out=tmp_path / "2", topics=["%RETRY%G_retry"]
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs"]


def test_topics_of_the_names_of_the_other_system_are_left_out(tmp_path: Path) -> None:
    with BlockingMessageStore.open(tmp_path / "store") as written:
        for topic in ("Orders", "__consumer_offsets"):
            written.put(Message(topic, b"body"))
    report = convert_to_kafka(tmp_path / "store", ENGINE, out=tmp_path / "logs")
    assert set(read_logs(tmp_path / "logs")) == {("Orders", 0)}
    reason = "the name belongs to one of Kafka's own topics"
    assert report.left_out == [LeftOut("__consumer_offsets", reason)]


def test_something_at_the_place_of_the_output(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for convert, source in (
        (convert_to_kafka, store("rmq5-clean").path),
        (convert_to_rocketmq, golden_kafka.log_directory()),
    ):
        with pytest.raises(JobError, match="not empty"):
            convert(source, ENGINE, out=tmp_path)
        with pytest.raises(JobError, match="Not a directory"):
            convert(source, ENGINE, out=tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StoreError("no")

    monkeypatch.setattr(job_to_kafka, "to_kafka", fail)
    with pytest.raises(StoreError, match="no"):
        convert_to_kafka(store("rmq5-clean").path, ENGINE, out=tmp_path / "logs")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", range(1, 6))
def test_a_failed_rename_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    rename, done = Path.rename, list[Path]()

    def fail(path: Path, target: Path) -> Path:
        done.append(path)
        if len(done) == number:
            raise OSError(errno.EIO, "refused", str(path))
        return rename(path, target)

    source, out = golden_kafka.log_directory(), tmp_path / "store"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail)
        try:
            convert_to_rocketmq(source, ENGINE, out=out, topics=["txn"])
        except MqlakeError as error:
            assert "refused" in str(error)  # noqa: PT017 (only some renames must succeed)
            assert list(tmp_path.iterdir()) == []
    assert len(done) >= min(number, 4)
    if not any(tmp_path.iterdir()):
        convert_to_rocketmq(source, ENGINE, out=out, topics=["txn"])
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_an_attempt_more_changes_nothing(tmp_path: Path) -> None:
    job = ConvertQueueJob(str(store("rmq5-clean").path), "TopicA", 1, str(tmp_path))
    first = convert_queue(job)
    files = {path: path.read_bytes() for path in (tmp_path / "TopicA-1").iterdir()}
    assert convert_queue(job) == first
    assert {path: path.read_bytes() for path in (tmp_path / "TopicA-1").iterdir()} == files
    assert [path.name for path in tmp_path.iterdir()] == ["TopicA-1"]

    logs = LogsJob(
        str(golden_kafka.log_directory()),
        [("txn", 0), ("compacted", 0)],
        Isolation.READ_COMMITTED,
        str(tmp_path),
    )
    assert write_store(logs) == write_store(logs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["TopicA-1", "store"]


def test_damage_is_left_out_and_told(tmp_path: Path) -> None:
    golden = store("rmq5-clean")
    path = golden.copy(tmp_path / "broken")
    [message] = [
        one
        for one in golden.messages()
        if (one["topic"], one["queueId"], one["queueOffset"]) == ("TopicA", 0, 5)
    ]
    at = message["physicalOffset"]
    with (path / "commitlog" / f"{at >> 20 << 20:020d}").open("r+b") as segment:
        segment.seek((at & 0xFFFFF) + 4)
        segment.write(b"\0\0\0\0")
    report = convert_to_kafka(path, ENGINE, out=tmp_path / "logs", topics=["TopicA"])
    [damage] = report.damage
    assert damage.offset == at & 0xFFFFF
    assert "queue offset 5" in damage.reason
    offsets = [one[0] for one in read_logs(tmp_path / "logs")["TopicA", 0]]
    assert offsets == [number for number in range(offsets[-1] + 1) if number != 5]

    broken = golden_kafka.GoldenPartition("plain-none-0").copy(tmp_path / "l" / "plain-none-0")
    log = min(broken.glob("*.log"))
    data = bytearray(log.read_bytes())
    data[80] ^= 1
    log.write_bytes(data)
    report = convert_to_rocketmq(tmp_path / "l", ENGINE, out=tmp_path / "store")
    assert len(report.damage) == 1
    assert 0 < 3000 - report.records < 100


def test_what_rocketmq_cannot_hold(tmp_path: Path) -> None:
    with OwnedLogDirectory(tmp_path / "logs") as logs:
        headers = [("h", b"v" * 40_000)]
        logs.partition("t", 0).append([NewRecord(1, b"k", b"v"), NewRecord(1, b"k", b"v", headers)])
    with pytest.raises(StoreError, match="offset 1: RocketMQ cannot hold it: the properties have"):
        convert_to_rocketmq(tmp_path / "logs", ENGINE, out=tmp_path / "store")
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_times_that_go_back_do_so_for_nobody_else(tmp_path: Path) -> None:
    with OwnedLogDirectory(tmp_path / "logs") as logs:
        for number, times in enumerate(([10, 5, 30], [-1, 20, 25])):
            logs.partition("t", number).append([NewRecord(time, None, b"") for time in times])
    convert_to_rocketmq(tmp_path / "logs", ENGINE, out=tmp_path / "store")
    found = [one for records in read_store(tmp_path / "store").values() for one in records]
    found.sort(key=lambda one: one.physical_offset)
    assert [(one.queue_id, one.born_timestamp, one.store_timestamp) for one in found] == [
        (1, -1, 0),
        (0, 10, 10),
        (0, 5, 10),
        (1, 20, 20),
        (1, 25, 25),
        (0, 30, 30),
    ]


def test_messages_of_compressed_inner_batches_are_records(tmp_path: Path) -> None:
    maker = StoreMaker()
    body, bits = compress(encode_batch((0, b"body %d" % n, b"") for n in range(3)), "zlib", 5)
    maker.sys_flag = FLAGS | bits
    maker.append(body=body, INNER_BASE="0", INNER_NUM="3")
    write(maker.files(), tmp_path / "store")
    convert_to_kafka(tmp_path / "store", ENGINE, out=tmp_path / "logs")
    records = read_logs(tmp_path / "logs")["T", 0]
    assert [(offset, value) for offset, _, _, value, _ in records] == [
        (n, b"body %d" % n) for n in range(3)
    ]


def test_messages_of_inner_batches_are_records(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    source = batches.opened(tmp_path / "store")
    batches.fill(source, [3, 1, 2])
    source.tick()
    source.close()
    with pytest.MonkeyPatch.context() as patch:
        # As in a log of which only the end is looked at.
        patch.setattr("mqlake.store.snapshot._ALWAYS_SCANNED", 0)
        convert_to_kafka(tmp_path / "store", ENGINE, out=tmp_path / "logs")

    records = read_logs(tmp_path / "logs")["Batches", 0]

    wanted = [b"body %d" % number for size in (3, 1, 2) for number in range(size)]
    assert [(offset, value) for offset, _, _, value, _ in records] == list(enumerate(wanted))
