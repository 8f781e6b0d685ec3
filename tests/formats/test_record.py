"""Commit-log records: what Java read of real ones, each fault, round trips."""

from __future__ import annotations

import hashlib
import struct
import zlib

import pytest
from hypothesis import given

from mqlake.errors import FormatError
from mqlake.formats import record, sys_flag
from mqlake.formats.record import Fault
from tests.formats.golden_log import golden, messages, record_bytes, records
from tests.formats.java_answers import lines
from tests.formats.strategies import RECORD_FIELDS

STORES = ["rmq5-clean", "rmq533-clean", "rmq49-clean", "rmq5-killed", "rmq5-default"]

GOOD = record.encode(
    topic="Topic",
    body=b"body",
    properties={"KEYS": "a b", "TAGS": "t"},
    queue_id=3,
    physical_offset=4096,
)
BODY_AT = record.MIN_SIZE - 1 - 2
TOPIC_AT = BODY_AT + len(b"body") + 1


def changed(at: int, new: bytes, old: bytes = GOOD) -> bytes:
    return old[:at] + new + old[at + len(new) :]


def verdict(data: bytes, physical_offset: int | None = None, *, crc: bool = True) -> Fault:
    fault, layout = record.check(data, 0, len(data), physical_offset, crc=crc)
    assert (layout is not None) == (fault in (Fault.GOOD, Fault.OFFSET, Fault.TOPIC, Fault.CRC))
    return fault


@pytest.mark.parametrize("name", STORES)
def test_every_field_of_every_record_is_what_java_read(name: str) -> None:
    count = 0
    for expected, data in records(name):
        actual = record.decode(data)

        assert {
            "physicalOffset": actual.physical_offset,
            "size": actual.size,
            "bodyCRC": actual.body_crc,
            "queueId": actual.queue_id,
            "flag": actual.flag,
            "queueOffset": actual.queue_offset,
            "sysFlag": actual.sys_flag,
            "bornTimestamp": actual.born_timestamp,
            "bornHost": "/" + actual.born_host,
            "storeTimestamp": actual.store_timestamp,
            "storeHost": "/" + actual.store_host,
            "reconsumeTimes": actual.reconsume_times,
            "preparedTransactionOffset": actual.prepared_transaction_offset,
            "topic": actual.topic,
            "bodySha1": hashlib.sha1(actual.body).hexdigest(),
            "bodyLength": len(actual.body),
            "properties": actual.properties,
            "tagsCode": actual.tags_code,
            "keys": actual.properties.get("KEYS"),
            "uniqKey": actual.unique_key,
            "offsetMsgId": actual.message_id,
        }.items() <= expected.items()
        count += 1
    assert count == len(messages(name)) > 2000


@pytest.mark.parametrize("name", STORES)
def test_encode_gives_the_bytes_that_java_wrote(name: str) -> None:
    for _, data in records(name):
        actual = record.decode(data)
        _, layout = record.check(data, 0, len(data))
        assert layout is not None
        at = layout.properties_at
        fields = {field: getattr(actual, field) for field in actual.__struct_fields__}
        fields["properties"] = data[at : at + layout.properties_length]
        del fields["size"], fields["body_crc"]

        assert data == record.encode(**fields)


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq533-clean", "rmq49-clean"])
def test_check_agrees_with_java_on_changed_records(name: str) -> None:
    cases = golden(name).queries()["checkMessage"]
    mutations = {
        "good": lambda data, at: data,
        "flipBody": lambda data, at: data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :],
        "badMagic": lambda data, at: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :],
        "zeroTail": lambda data, at: data[:at] + bytes(len(data) - at),
    }
    seen = 0
    for case in cases:
        if case["mutation"] not in mutations:
            continue
        data = record_bytes(name, case["offset"], case["recordSize"])
        data = mutations[case["mutation"]](data, case["at"])
        fault = verdict(data, crc=case["checkCRC"])
        # Java lets an empty topic pass; a record without a topic can be put nowhere.
        assert case["success"] == (fault in (Fault.GOOD, Fault.TOPIC)), case
        seen += 1
    assert seen >= 20


def test_check_agrees_with_java_but_where_the_page_says() -> None:
    """docs/formats/record.md, "Damage"."""
    seen: set[tuple[Fault, bool]] = set()
    for digits, success, size, tags_code in lines("java_checks.txt.xz"):
        data = bytes.fromhex(digits)
        fault, java = verdict(data), success == "1"
        seen.add((fault, java))
        if fault is Fault.GOOD and java:
            message = record.decode(data)
            assert message.size == int(size)
            if message.properties.get("DELAY", "0").isascii():
                assert message.tags_code == int(tags_code)
        elif fault is Fault.GOOD:
            assert record.decode(data).properties["DELAY"] == "x"
        elif java and fault is Fault.LENGTHS:
            assert body_length(data) < 0
        elif java:
            assert fault in (Fault.TOPIC, Fault.BLANK)
    assert {(fault, False) for fault in (Fault.MAGIC, Fault.SIZE, Fault.CRC)} < seen
    assert {(fault, True) for fault in (Fault.GOOD, Fault.TOPIC, Fault.LENGTHS)} < seen


def body_length(data: bytes) -> int:
    flags = data[record.SYS_FLAG_AT + 3]
    hosts = sum(12 for bit in (sys_flag.BORN_HOST_V6, sys_flag.STORE_HOST_V6) if flags & bit)
    return struct.unpack_from(">i", data, BODY_AT - 4 + hosts)[0]


@pytest.mark.parametrize("name", ["rmq5-clean", "rmq5-killed"])
def test_log_walks_end_where_javas_does(name: str) -> None:
    walk = golden(name).walk()
    blanks = {blank["at"]: blank["size"] for blank in walk["blanks"]}
    assert blanks
    for at, size in blanks.items():
        data = record_bytes(name, at, size)
        assert verdict(data) is Fault.BLANK
        assert data[:8] == record.encode_blank(size)[:8]
    end = record_bytes(name, walk["endOffset"], 64)
    assert verdict(end) is Fault.UNWRITTEN


@given(RECORD_FIELDS)
def test_round_trip(fields: dict[str, object]) -> None:
    data = record.encode(**fields)  # pyright: ignore[reportArgumentType]
    actual = record.decode(b"before" + data + b"after", 6, 6 + len(data))

    v6 = sys_flag.BORN_HOST_V6 | sys_flag.STORE_HOST_V6
    assert fields.pop("sys_flag") & ~v6 == actual.sys_flag & ~v6
    assert fields == {name: getattr(actual, name) for name in fields}
    assert len(data) == actual.size
    assert data[4:8] == struct.pack(
        ">I", record.V1_MAGIC if len(actual.topic.encode()) <= 127 else record.V2_MAGIC
    )


def test_fields_that_are_not_given_are_zero() -> None:
    message = record.decode(record.encode(topic="T"))
    zeros = {name for name in message.__struct_fields__ if getattr(message, name) == 0}
    assert zeros == set(message.__struct_fields__) - {
        "topic", "size", "born_host", "store_host", "properties", "body"
    }  # fmt: skip
    assert (message.born_host, message.store_host) == ("127.0.0.1:0", "127.0.0.1:10911")


@pytest.mark.parametrize("length", [1, 126, 127, 128, 129, 255])
def test_long_topics_take_version_2(length: int) -> None:
    data = record.encode(topic="t" * length)
    _, layout = record.check(data, 0, len(data))
    assert layout is not None
    assert layout.version == (1 if length <= 127 else 2)
    assert record.decode(data).topic == "t" * length


FAULTS = {
    "nothing": (b"", Fault.SHORT),
    "seven bytes": (GOOD[:7], Fault.SHORT),
    "zeros": (bytes(64), Fault.UNWRITTEN),
    "size 0 wins over the blank magic": (
        struct.pack(">iI", 0, record.BLANK_MAGIC),
        Fault.UNWRITTEN,
    ),
    "blank": (record.encode_blank(20), Fault.BLANK),
    "magic": (changed(4, b"\xda\xa3\x20\xa6"), Fault.MAGIC),
    "size 90": (changed(0, struct.pack(">i", 90)), Fault.SIZE),
    "size below 0": (changed(0, struct.pack(">i", -len(GOOD))), Fault.SIZE),
    "one byte missing": (GOOD[:-1], Fault.SIZE),
    "size one more": (changed(0, struct.pack(">i", len(GOOD) + 1)) + b"\0", Fault.LENGTHS),
    "size one less": (changed(0, struct.pack(">i", len(GOOD) - 1)), Fault.LENGTHS),
    "body below 0": (changed(BODY_AT - 4, struct.pack(">i", -1)), Fault.LENGTHS),
    "body past the end": (changed(BODY_AT - 4, struct.pack(">i", 1 << 30)), Fault.LENGTHS),
    "topic past the end": (changed(TOPIC_AT - 1, b"\x7f"), Fault.LENGTHS),
    "hosts become longer": (changed(record.SYS_FLAG_AT + 3, b"\x30"), Fault.LENGTHS),
    "topic empty": (record.encode(topic=""), Fault.TOPIC),
    "topic a path": (changed(TOPIC_AT, b"../.."), Fault.TOPIC),
    "topic not UTF-8": (changed(TOPIC_AT, b"\xff"), Fault.TOPIC),
    "body": (changed(BODY_AT, b"B"), Fault.CRC),
    "stated CRC": (changed(8, b"\x80"), Fault.CRC),
    "good": (GOOD, Fault.GOOD),
}


@pytest.mark.parametrize("case", FAULTS)
def test_faults(case: str) -> None:
    data, expected = FAULTS[case]

    assert verdict(data) is expected
    if expected:
        with pytest.raises(FormatError, match="byte 0: ") as caught:
            record.decode(data)
        assert record.FAULT_REASONS[expected] in str(caught.value)


def test_every_fault_has_a_reason_and_a_case() -> None:
    assert set(record.FAULT_REASONS) == set(Fault)
    assert {fault for _, fault in FAULTS.values()} == set(Fault) - {Fault.OFFSET, Fault.TORN}


def test_offset_is_judged_where_it_is_given() -> None:
    assert verdict(GOOD, 4096) is Fault.GOOD
    assert verdict(GOOD, 4095) is Fault.OFFSET
    assert verdict(changed(TOPIC_AT, b"/"), 4095) is Fault.OFFSET


def test_topic_comes_before_crc_and_crc_may_be_left_out() -> None:
    both = changed(TOPIC_AT, b"/", changed(BODY_AT, b"B"))
    assert verdict(both) is Fault.TOPIC
    assert verdict(changed(BODY_AT, b"B"), crc=False) is Fault.GOOD
    assert record.decode(changed(BODY_AT, b"B"), crc=False).body == b"Body"


def test_an_empty_body_has_no_crc_to_check() -> None:
    empty = record.encode(topic="Topic")
    assert verdict(changed(8, b"\1\2\3\4", empty)) is Fault.GOOD


@pytest.mark.parametrize("length", [record.MAX_TOPIC_V1 + 1, 255])
def test_version_1_topic_lengths_are_signed_in_java(length: int) -> None:
    head = record.encode(topic="", body=b"")[:BODY_AT]
    data = head + bytes([length]) + b"t" * length + b"\0\0"
    data = struct.pack(">i", len(data)) + data[4:]
    assert verdict(data) is Fault.LENGTHS


def test_properties_longer_than_a_signed_short_are_refused() -> None:
    data = record.encode(topic="T", properties=b"p" * record.MAX_PROPERTIES)
    assert verdict(data) is Fault.GOOD
    longer = struct.pack(">i", len(data) + 1) + data[4:] + b"p"
    longer = changed(BODY_AT + 2, struct.pack(">H", record.MAX_PROPERTIES + 1), longer)
    assert verdict(longer) is Fault.LENGTHS
    with pytest.raises(FormatError):
        record.encode(topic="T", properties=b"p" * (record.MAX_PROPERTIES + 1))


@pytest.mark.parametrize(
    "fields",
    [
        {"queue_id": 1 << 31},
        {"physical_offset": 1 << 63},
        {"born_host": "localhost:1"},
        {"topic": "t" * (record.MAX_TOPIC_V2 + 1)},
        {"properties": {"": "x"}},
    ],
)
def test_values_that_do_not_fit_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(FormatError):
        record.encode(**{"topic": "T", **fields})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("length", [-1, 0, 7, 1 << 31])
def test_blank_records_have_a_frame(length: int) -> None:
    with pytest.raises(FormatError):
        record.encode_blank(length)
    assert len(record.encode_blank(8)) == record.FRAME_SIZE == 8


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(kind: type) -> None:
    assert record.decode(kind(GOOD)) == record.decode(GOOD)


def test_positions_outside_of_the_buffer_are_short() -> None:
    assert record.check(GOOD, -1, len(GOOD)) == (Fault.SHORT, None)
    assert record.check(GOOD, len(GOOD), 1 << 40) == (Fault.SHORT, None)
    assert record.check(GOOD[:-1], 0, 1 << 40) == (Fault.SIZE, None)
    assert record.check(GOOD + GOOD[:-1], len(GOOD), 1 << 40) == (Fault.SIZE, None)
    assert record.check(GOOD + GOOD, len(GOOD), 2 * len(GOOD))[0] is Fault.GOOD
    assert record.check(GOOD + GOOD, len(GOOD), 2 * len(GOOD) - 1) == (Fault.SIZE, None)


def test_layout_says_where_the_parts_are() -> None:
    data = b"xx" + GOOD
    fault, layout = record.check(data, 2, len(data))
    assert fault is Fault.GOOD
    assert layout is not None
    assert data[layout.body_at :][: layout.body_length] == b"body"
    assert data[layout.topic_at :][: layout.topic_length] == b"Topic"
    assert data[layout.properties_at :][: layout.properties_length] == b"KEYS\1a b\2TAGS\1t\2"
    assert zlib.crc32(b"body") & record.CRC_MASK == record.decode(GOOD).body_crc
    timestamp = record.encode(topic="T", born_host="[::1]:1", store_timestamp=77)
    _, layout = record.check(timestamp, 0, len(timestamp))
    assert layout is not None
    assert struct.unpack_from(">q", timestamp, layout.store_timestamp_at) == (77,)
