"""Appending one message: its record, the checks in their order, nothing changed by a refusal."""

from __future__ import annotations

import zlib

import msgspec
import pytest

from mqlake.formats import properties, record, record_crc, sys_flag
from mqlake.formats.properties import INNER_NUM
from mqlake.store.append.message import Message
from mqlake.store.append.put_result import PutStatus
from mqlake.store.settings import BrokerRole, StoreSettings
from tests.crash.disk import RecordedDisk, RecordedFile
from tests.crash.faulty import Fault, FaultyDisk
from tests.store.appending import NOW, SIZE, Appending, message

LONG = 127
MAX_BODY = StoreSettings().max_message_size


@pytest.fixture
def log() -> Appending:
    return Appending()


def with_settings(**changes: object) -> Appending:
    settings = StoreSettings(mapped_file_size_commit_log=SIZE)
    return Appending(msgspec.structs.replace(settings, **changes))


def test_the_record_holds_what_the_message_says(log: Appending) -> None:
    log.put(message())
    (result,) = log.put(
        Message(
            topic="T",
            body=b"text",
            tags="A",
            keys=["k1", "k2"],
            properties={"colour": "grün", "UNIQ_KEY": "u"},
            queue_id=3,
            flag=-5,
            sys_flag=sys_flag.COMPRESSED,
            born_timestamp=NOW - 7,
            born_host="10.0.0.1:999",
            reconsume_times=2,
            prepared_transaction_offset=77,
            delay_level=4,
        )
    )
    found = log.record(result)
    assert msgspec.structs.asdict(found) == {
        "topic": "T",
        "queue_id": 3,
        "queue_offset": 0,
        "physical_offset": log.log.end - result.size,
        "size": result.size,
        "body_crc": found.body_crc,
        "flag": -5,
        "sys_flag": sys_flag.COMPRESSED,
        "born_timestamp": NOW - 7,
        "born_host": "10.0.0.1:999",
        "store_timestamp": NOW,
        "store_host": "127.0.0.1:10911",
        "reconsume_times": 2,
        "prepared_transaction_offset": 77,
        "properties": {
            "colour": "grün",
            "UNIQ_KEY": "u",
            "KEYS": "k1 k2",
            "TAGS": "A",
            "DELAY": "4",
            record_crc.NAME: found.properties[record_crc.NAME],
        },
        "body": b"text",
    }
    assert result.message_id == found.message_id
    assert (result.count, result.queue_offset, result.store_timestamp) == (1, 0, NOW)


def test_born_time_and_host_default_to_those_of_the_store(log: Appending) -> None:
    (result,) = log.put(message(tags="", keys=""))
    found = log.record(result)
    assert (found.born_timestamp, found.born_host) == (NOW, "127.0.0.1:10911")
    assert [*found.properties] == [record_crc.NAME]


@pytest.mark.parametrize("store", ["10.0.0.2", "fd00::2"])
@pytest.mark.parametrize("born", ["10.0.0.1:1", "[fd00:0:0:0:0:0:0:1]:2"])
def test_hosts_of_both_kinds(store: str, born: str) -> None:
    log = with_settings(broker_ip1=store, listen_port=5)
    # Clients cannot be trusted with these two bits.
    both = sys_flag.BORN_HOST_V6 | sys_flag.STORE_HOST_V6
    for flags in (0, both):
        (result,) = log.put(message(born_host=born, sys_flag=flags))
        found = log.record(result)
        assert found.born_host == born
        assert found.store_host == (
            "10.0.0.2:5" if store == "10.0.0.2" else "[fd00:0:0:0:0:0:0:2]:5"
        )
        assert result.message_id == found.message_id


def test_queue_offsets_count_each_queue_by_itself(log: Appending) -> None:
    queues = [("A", 0), ("A", 1), ("A", 0), ("B", 0), ("A", 0)]
    results = log.put(*(message(topic=topic, queue_id=queue) for topic, queue in queues))
    assert [result.queue_offset for result in results] == [0, 0, 1, 0, 2]
    assert log.offsets.next("A", 0) == 3
    assert log.offsets.topics() == ["A", "B"]
    log.offsets.set("A", 0, 10)
    assert log.put(message(topic="A"))[0].queue_offset == 10


@pytest.mark.parametrize("kind", [sys_flag.TRANSACTION_PREPARED, sys_flag.TRANSACTION_ROLLBACK])
def test_half_and_rollback_messages_take_no_queue_offset(log: Appending, kind: int) -> None:
    results = log.put(
        message(), message(sys_flag=kind), message(sys_flag=sys_flag.TRANSACTION_COMMIT)
    )
    assert [result.queue_offset for result in results] == [0, 0, 1]
    assert log.record(results[1]).queue_offset == 0
    assert log.offsets.next("T", 0) == 2


@pytest.mark.parametrize(
    ("length", "magic"), [(127, record.V1_MAGIC), (128, record.V2_MAGIC), (255, record.V2_MAGIC)]
)
def test_only_topics_over_127_bytes_need_version_2(log: Appending, length: int, magic: int) -> None:
    (result,) = log.put(message(topic="é" * (length // 2) + "e" * (length % 2)))
    data = log.log.read(result.physical_offset, result.size)
    assert int.from_bytes(data[4:8], "big") == magic
    assert len(record.decode(data).topic.encode()) == length


def test_without_version_2_topics_have_127_bytes() -> None:
    log = with_settings(auto_message_version_on_topic_len=False)
    results = log.put(message(topic="t" * 127), message(topic="t" * 128))
    assert [result.status for result in results] == [PutStatus.PUT_OK, PutStatus.MESSAGE_ILLEGAL]


BAD = {
    "a topic of 256 bytes": {"topic": "t" * 256},
    "no topic": {"topic": ""},
    "a topic that is a path": {"topic": "../T"},
    "a topic that is no text": {"topic": "\ud800"},
    "a queue below 0": {"queue_id": -1},
    "a queue beyond 32 bits": {"queue_id": 1 << 31},
    "a flag beyond 32 bits": {"flag": 1 << 31},
    "a born time beyond 64 bits": {"born_timestamp": 1 << 63},
    "a host without a port": {"born_host": "10.0.0.1"},
    "an inner batch": {"sys_flag": sys_flag.INNER_BATCH},
    "the properties of an inner batch": {"properties": {INNER_NUM: "3"}},
    "so, as they were sent": {"encoded_properties": f"a\x01b\x02{INNER_NUM}\x013".encode()},
    "tags with a separator": {"tags": "a\x02b"},
    "keys with a separator": {"keys": ["a", "b\x02c"]},
    "tags that are no text": {"tags": "\ud800"},
    "a property without a value": {"properties": {"a": ""}},
    "a property's name with a separator": {"properties": {"a\x01": "b"}},
    "a body of too many bytes": {"body": bytes(MAX_BODY + 1)},
    "a body that does not fit in a file": {"body": bytes(SIZE)},
    "no body": {"body": None},
    "a text for a body": {"body": "text"},
    "a number for a topic": {"topic": 1},
    "a list for a topic": {"topic": ["T"]},
    "a text for a number": {"flag": "1"},
    "a number for a map": {"properties": 5},
}


@pytest.mark.parametrize("name", BAD)
def test_illegal_messages_are_refused_and_change_nothing(log: Appending, name: str) -> None:
    log.put(message())
    before = log.state()
    (result,) = log.put(message(**BAD[name]))
    assert result.status is PutStatus.MESSAGE_ILLEGAL
    assert result.reason
    assert (result.count, result.message_id, result.is_ok) == (0, "", False)
    assert log.state() == before
    assert log.put(message())[0].queue_offset == 1


def test_a_message_that_only_resembles_an_inner_batch_is_not_one(log: Appending) -> None:
    (result,) = log.put(message(properties={"X" + INNER_NUM: "3", "a": INNER_NUM}))
    assert result.is_ok


def test_a_largest_record_fills_a_file(log: Appending) -> None:
    rest = log.put(message(body=b""))[0].size
    largest = SIZE - rest - record.FRAME_SIZE
    (fits, does_not) = log.put(message(body=bytes(largest)), message(body=bytes(largest + 1)))
    assert (fits.physical_offset, fits.size) == (SIZE, SIZE - record.FRAME_SIZE)
    assert does_not.status is PutStatus.MESSAGE_ILLEGAL
    assert "do not fit" in does_not.reason
    assert log.put(message())[0].physical_offset == 2 * SIZE


@pytest.mark.parametrize("appends_crc", [False, True])
def test_properties_up_to_32767_bytes_the_record_crc_among_them(appends_crc: bool) -> None:
    log = with_settings(enabled_append_prop_crc=appends_crc)
    most = properties.MAX_LENGTH - appends_crc * record_crc.SIZE
    fit = [
        {"encoded_properties": b"a\x01" + b"b" * (most - 3) + b"\x02"},
        {"properties": {"a": "b" * (most - 3)}},
        {"tags": "b" * (most - 6)},
        {"encoded_properties": b"b" * (most - appends_crc)},
    ]
    exceed = [
        {"encoded_properties": b"a\x01" + b"b" * (most - 2) + b"\x02"},
        {"properties": {"a": "b" * (most - 2)}},
        {"tags": "b" * (most - 5)},
        {"encoded_properties": b"b" * (most - appends_crc + 1)},
    ]
    results = log.put(*(message(**one) for one in fit))
    assert all(result.is_ok for result in results)
    before = log.state()
    results = log.put(*(message(**one) for one in exceed))
    assert {result.status for result in results} == {PutStatus.PROPERTIES_SIZE_EXCEEDED}
    assert all("32768 bytes; the maximum is 32767" in result.reason for result in results)
    assert log.state() == before


PAIRS = b"a\x01b\x02"
OLD = record_crc.encode(77)
CRCS = {
    "none": (b"", b""),
    "no separator": (b"a\x01b", PAIRS),
    "a separator": (PAIRS, PAIRS),
    "the CRC of another record": (PAIRS + OLD, PAIRS),
    "nothing else": (OLD, b""),
    "several": (OLD + PAIRS + OLD + OLD + b"c\x01d", PAIRS + b"c\x01d\x02"),
    "without its end": (PAIRS + OLD[:-1], PAIRS),
    "NULs": (b"a\x01" + bytes(600), b"a\x01" + bytes(600) + b"\x02"),
    "anything": (b"\xff\x01\x02\x02\x01", b"\xff\x01\x02\x02\x01\x02"),
}


@pytest.mark.parametrize("name", CRCS)
def test_each_record_states_a_crc_of_itself(log: Appending, name: str) -> None:
    """As RocketMQ does: the last property, in place of any that the message brings."""
    sent, stored = CRCS[name]
    log.put(message())
    (result,) = log.put(message(encoded_properties=sent, queue_id=1, body=b"x" * 300))
    data = bytes(log.log.read(result.physical_offset, result.size))
    before = data[: -record_crc.SIZE]
    crc = zlib.crc32(before) & 0x7FFFFFFF
    assert data == before + b"__CRC32#\x01" + f"{crc:010d}"[::-1].encode() + b"\x02"
    length = len(stored) + record_crc.SIZE
    assert before.endswith(b"\x01T" + length.to_bytes(2, "big") + stored)
    assert record.check(data, 0, len(data), result.physical_offset)[0] is record.Fault.GOOD


@pytest.mark.parametrize("name", CRCS)
def test_without_the_setting_only_what_the_message_brings_is_left_out(name: str) -> None:
    log = with_settings(enabled_append_prop_crc=False)
    sent, stored = CRCS[name]
    (result,) = log.put(message(encoded_properties=sent))
    data = bytes(log.log.read(result.physical_offset, result.size))
    kept = stored if sent.endswith(b"\x02") else stored.removesuffix(b"\x02")
    if name == "without its end":
        kept = PAIRS
    assert data.endswith(b"\x01T" + len(kept).to_bytes(2, "big") + kept)


def test_a_crc_among_the_properties_is_left_out(log: Appending) -> None:
    (result,) = log.put(message(properties={"a": "b", record_crc.NAME: "0"}))
    found = log.record(result)
    assert [*found.properties] == ["a", record_crc.NAME]
    assert len(found.properties[record_crc.NAME]) == record_crc.DIGITS


def test_checks_come_in_rocketmqs_order() -> None:
    """Of several faults the one that RocketMQ checks first decides."""
    log = with_settings(broker_role=BrokerRole.SLAVE)
    worst = message(topic="", properties={"a": "b" * 40_000}, body=bytes(MAX_BODY + 1))
    log.appender.set_not_writable("the disk is full")
    log.appender.shut_down()
    assert "shut down" in log.put(worst)[0].reason

    log = with_settings(broker_role=BrokerRole.SLAVE)
    log.appender.set_not_writable("the disk is full")
    assert "slave" in log.put(worst)[0].reason

    log = with_settings()
    log.appender.set_not_writable("the disk is full")
    (result,) = log.put(worst)
    assert (result.status, result.reason) == (
        PutStatus.SERVICE_NOT_AVAILABLE,
        "the store is read-only: the disk is full",
    )
    log.appender.set_not_writable(None)
    assert "topic" in log.put(worst)[0].reason
    worst.topic = "T"
    assert log.put(worst)[0].status is PutStatus.PROPERTIES_SIZE_EXCEEDED
    worst.properties = {}
    assert "maxMessageSize" in log.put(worst)[0].reason
    worst.body = b""
    assert log.put(worst)[0].is_ok


class _Slow(RecordedDisk):
    """A disk during whose work time passes, and another thread looks."""

    def __init__(self) -> None:
        super().__init__()
        self.look = lambda: None

    def create(self, path: str, size: int) -> RecordedFile:
        self.look()
        return super().create(path, size)


def test_others_need_not_wait_for_an_append_that_takes_long() -> None:
    disk = _Slow()
    log = Appending(disk=disk)
    seen: list[PutStatus | None] = []

    def ask(topic: str = "T") -> None:
        answer = log.appender.answer_if_busy(message(topic=topic))
        seen.append(answer and answer.status)

    def look() -> None:
        log.clock.now += 1000
        ask()
        log.clock.now += 1
        ask()
        ask(topic="")

    disk.look = look
    assert log.put(message())[0].is_ok
    ask()
    log.appender.shut_down()
    ask()
    illegal, busy = PutStatus.MESSAGE_ILLEGAL, PutStatus.OS_PAGE_CACHE_BUSY
    assert seen == [None, busy, illegal, None, None]


@pytest.mark.parametrize("fault", [Fault.FULL_FOR_EVER, Fault.NO_DESCRIPTOR_FOR_EVER])
def test_a_disk_that_refuses_changes_nothing(fault: Fault) -> None:
    """The first put needs a directory, a file and room; each of them fails once."""
    counted = FaultyDisk(fault, at=-1)
    Appending(disk=counted).put(message())
    for at in range(1, counted.operations + 1):
        disk = FaultyDisk(fault, at=-1)
        log = Appending(disk=disk)
        disk._at = disk.operations + at
        if disk._at > counted.operations:
            break
        (result,) = log.put(message())
        assert result.status is PutStatus.CREATE_MAPPED_FILE_FAILED
        assert result.reason.startswith("disk:")
        assert log.state() == (0, {}, b"")
        disk.mend()
        assert log.put(message())[0].is_ok


def test_a_disk_that_is_full_within_a_file_is_an_unknown_error() -> None:
    disk = FaultyDisk(Fault.FULL_FOR_EVER, at=-1)
    log = Appending(StoreSettings(mapped_file_size_commit_log=8 << 20), disk=disk)
    assert log.put(message())[0].is_ok
    before = log.state()
    disk._at = 1
    (result,) = log.put(message(body=bytes(2 << 20)))
    assert result.status is PutStatus.UNKNOWN_ERROR
    assert log.state() == before


def test_a_long_record_is_the_same_bytes_as_a_short_one_would_be() -> None:
    """It is written in parts, and its CRC is put together from that of its body."""
    log = Appending(StoreSettings(mapped_file_size_commit_log=8 << 20))
    body = bytes(range(256)) * 4100
    results = log.put(message(), message(body=body, properties={"a": "b"}), message())
    assert [each.is_ok for each in results] == [True] * 3
    found = log.record(results[1])
    assert found.body == body
    assert found.body_crc == zlib.crc32(body) & record.CRC_MASK
    data = bytes(log.log.read(results[1].physical_offset, results[1].size))
    stated = record_crc.stated(data[-record_crc.SIZE - 1 :])
    assert stated == zlib.crc32(data[: -record_crc.SIZE]) & record_crc.MASK
    assert log.record(results[2]).queue_offset == 2


@pytest.mark.parametrize("fault", [Fault.INPUT_OUTPUT, Fault.SHORT_WRITE, Fault.FULL_FOR_EVER])
@pytest.mark.parametrize("at", range(1, 6))
def test_a_long_record_that_the_disk_refuses_is_not_stored(fault: Fault, at: int) -> None:
    """Each of its writes fails; what was written before is no record behind the next one."""
    disk = FaultyDisk(fault, at=-1)
    log = Appending(StoreSettings(mapped_file_size_commit_log=8 << 20), disk)
    assert log.put(message(body=b"before"))[0].is_ok
    before = log.state()
    disk._at = disk.operations + at
    (result,) = log.put(message(body=b"\0\0\0\x60" * (80 << 10), properties={"a": "b"}))
    if result.is_ok:
        assert not disk.has_failed
        return
    assert result.status is PutStatus.UNKNOWN_ERROR
    disk.mend()
    assert log.state() == before
    (result,) = log.put(message(body=b"after"))
    assert log.record(result).body == b"after"
    assert log.record(result).queue_offset == 1
    file = log.log.file(log.log.segments[-1])
    assert not file.read(log.log.position, 1 << 20).strip(b"\0")
