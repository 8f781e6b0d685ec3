"""Real records, and hostile ones, segments and stores made of them."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from typing import Any

from mqlake.formats import index_file, record
from mqlake.formats.index_file import HEADER_SIZE, SLOT_SIZE
from mqlake.formats.properties import MAX_LENGTH
from mqlake.formats.record import Fault
from tests.golden import store
from tests.hostile.cases import Case
from tests.hostile.mutate import NAMES, NUMBERS, Field, change
from tests.odd_messages import odd_body, odd_properties

STORES = ("rmq5-clean", "rmq533-clean", "rmq49-clean")
LONGEST = 700

Fields = dict[str, Any]

LONGS = ("queue_offset", "born_timestamp", "store_timestamp", "prepared_transaction_offset")
INTS = ("queue_id", "flag", "reconsume_times", "sys_flag")


def golden_records(name: str) -> Iterator[bytes]:
    """Yield the records of a golden store."""
    for path in sorted((store(name).path / "commitlog").iterdir()):
        data = path.read_bytes()
        at = 0
        while (checked := record.check(data, at, len(data), crc=False))[0] is Fault.GOOD:
            layout = checked[1]
            assert layout is not None
            yield data[at : at + layout.size]
            at += layout.size


@functools.cache
def real_fields() -> tuple[Fields, ...]:
    """Return short records of every kind (topic, flags) in the golden stores, as fields."""
    kinds: dict[object, list[bytes]] = {}
    for name in STORES:
        for data in golden_records(name):
            if len(data) <= LONGEST:
                _, layout = record.check(data, 0, len(data), crc=False)
                assert layout is not None
                topic = data[layout.topic_at : layout.topic_at + layout.topic_length]
                flags = data[record.SYS_FLAG_AT : record.SYS_FLAG_AT + 4]
                kinds.setdefault((name, topic, flags), []).append(data)
    return tuple(fields_of(data) for found in kinds.values() for data in found[:3])


def fields_of(data: bytes) -> Fields:
    """Return the arguments of `record.encode` that make this record."""
    _, layout = record.check(data, 0, len(data), crc=False)
    assert layout is not None
    found = record.decode(data, crc=False)
    start = layout.properties_at
    return {
        **{name: getattr(found, name) for name in (*LONGS, *INTS)},
        "topic": found.topic,
        "born_host": found.born_host,
        "store_host": found.store_host,
        "body": found.body,
        "properties": data[start : start + layout.properties_length],
    }


def record_fields(data: bytes) -> list[Field]:
    """Return the numbers in a record: lengths, magic, offsets, flags."""
    fields = [
        Field("size", 0, 4),
        Field("magic", record.MAGIC_AT, 4),
        Field("body CRC", record.BODY_CRC_AT, 4),
        Field("queue id", record.QUEUE_ID_AT, 4),
        Field("queue offset", record.QUEUE_OFFSET_AT, 8),
        Field("physical offset", record.PHYSICAL_OFFSET_AT, 8),
        Field("sys flag", record.SYS_FLAG_AT, 4),
    ]
    _, layout = record.check(data, 0, len(data), crc=False)
    if layout is not None:
        fields += [
            Field("store timestamp", layout.store_timestamp_at, 8),
            Field("body length", layout.body_at - 4, 4),
            Field("topic length", layout.topic_at - layout.version, layout.version),
            Field("properties length", layout.properties_at - 2, 2),
        ]
    return fields


def index_fields(slots: int, entries: int) -> list[Field]:
    """Return the numbers of an index file: header, slots, entries."""
    names = ("begin time", "end time", "begin offset", "end offset")
    fields = [Field(name, 8 * place, 8) for place, name in enumerate(names)]
    fields += [Field("slots in use", 32, 4), Field("index count", 36, 4)]
    fields *= entries // 10 + 1  # as likely as all entries together
    fields += [Field(f"slot {n}", HEADER_SIZE + n * SLOT_SIZE, 4) for n in range(slots)]
    for entry in range(1, entries + 1):
        at = index_file.entry_at(slots, entry)
        fields += [
            Field(f"hash {entry}", at, 4),
            Field(f"offset {entry}", at + 4, 8),
            Field(f"seconds {entry}", at + 12, 4),
            Field(f"link {entry}", at + 16, 4),
        ]
    return fields


def well_formed(case: Case, fields: Fields, physical_offset: int) -> bytes:
    """Return a record that its lengths and CRC call good, with one thing in it that is hostile."""
    dice, fields = case.dice, dict(fields)
    way = dice.randrange(7)
    raw_topic: bytes | None = None
    if way == 0:
        name = dice.choice((*LONGS, *INTS))
        bits = 64 if name in LONGS else 32
        value = dice.choice(NUMBERS) & (1 << bits) - 1
        fields[name] = value - (1 << bits) if value >> bits - 1 else value
        case.tell(f"{name} = {fields[name]}")
    elif way == 1:
        raw_topic = dice.choice(NAMES)
        fields["topic"] = "t" * len(raw_topic)
        case.tell(f"topic = {raw_topic[:20]!r}")
    elif way == 2:
        fields["properties"], what = hostile_properties(dice)
        fields["topic"] = dice.choice((fields["topic"], "SCHEDULE_TOPIC_XXXX"))
        case.tell(f"properties: {what}")
    elif way == 3:
        fields["body"] = imitations(case, fields, physical_offset)
    elif way == 4:
        fields["body"] = dice.choice(
            (
                b"",
                b"\0" * 300,
                record.V1_MAGIC.to_bytes(4, "big") * 40,
                b"\xcb" * 64,
                odd_body(dice, 2000),
            )
        )
        case.tell("odd body")
    elif way == 5:
        fields["topic"] = "SCHEDULE_TOPIC_XXXX"
        time = dice.choice((0, -1, (1 << 63) - 1, -(1 << 63), fields["store_timestamp"]))
        level = dice.choice((b"1", b"18", b"99", b"0", b"-3", b"+0000000000002", b"2147483648"))
        fields["store_timestamp"] = time
        fields["properties"] = b"DELAY\x01" + level + b"\x02TAGS\x01T\x02"
        case.tell(f"delay level {level!r} at {time}")
    else:
        case.tell("as it was")
    data = bytearray(record.encode(physical_offset=physical_offset, **fields))
    _, layout = record.check(data, 0, len(data), crc=False)
    if raw_topic is not None:
        at = data.rindex(b"t" * len(raw_topic), 0, len(data) - len(fields["properties"]))
        data[at : at + len(raw_topic)] = raw_topic
    if layout is not None and layout.version == 1 and dice.random() < 0.1:
        to_version_2(data, layout.topic_at)
        case.tell("as version 2")
    return bytes(data)


def to_version_2(data: bytearray, topic_at: int) -> None:
    """Give the topic's length a second byte."""
    data[topic_at - 1 : topic_at - 1] = b"\0"
    data[:8] = len(data).to_bytes(4, "big") + record.V2_MAGIC.to_bytes(4, "big")


def hostile_properties(dice: random.Random) -> tuple[bytes, str]:
    """Return properties that are slow or odd to take apart; say what they are."""
    if dice.random() < 0.3:
        return odd_properties(dice, MAX_LENGTH - 1, of_system=dice.random() < 0.3), "odd"
    many = dice.choice((3, 40, 2000))
    return dice.choice(
        (
            (b"\x01" * many, "name separators"),
            (b"\x02" * many, "property separators"),
            (b"\x01\x02" * many, "both separators"),
            (b"KEYS\x01" + b"k " * many + b"\x02", "many keys"),
            (b"KEYS\x01" + b" " * many + b"\x02", "spaces"),
            (b"KEYS\x01a\x02" * min(many, 3000), "KEYS again and again"),
            (b"UNIQ_KEY\x01" + b"u" * many, "long unique key without an end"),
            (b"TAGS\x01\xed\xa0\x80\xff\x02KEYS\x01\xc3 \xa9\x02", "malformed UTF-8"),
            (b"".join(b"%d\x01v\x02" % n for n in range(many)), "many names"),
            (b"TAGS\x01\x02TAGS\x01a\x01b\x02KEYS\x02\x01x\x02", "empty names and values"),
            ("KEYS\x01\U0001f600 \u65e5\u672c\x02TAGS\x01\U0001f600\x02".encode(), "far planes"),
            (dice.randbytes(many), "random"),
        )
    )


def imitations(case: Case, fields: Fields, physical_offset: int) -> bytes:
    """Return a body that holds records which state the offset where they stand."""
    dice = case.dice
    plain = record.encode(**{**fields, "body": b""}, physical_offset=physical_offset)
    _, layout = record.check(plain, 0, len(plain), crc=False)
    at = physical_offset + (layout.body_at if layout else 0)
    body = bytearray(dice.randbytes(dice.choice((0, 1, 5))))
    for _ in range(dice.randrange(1, 4)):
        inner = record.encode(**dice.choice(real_fields()), physical_offset=at + len(body))
        if dice.random() < 0.3:  # a CRC, or lengths, that are wrong at second sight
            broken = bytearray(inner)
            broken[dice.choice((record.BODY_CRC_AT, len(inner) - 1, 3))] ^= 0xFF
            inner = bytes(broken)
        body += inner
    if dice.random() < 0.2:
        body += record.encode_blank(dice.choice((8, 100)))
    case.tell(f"{len(body)} bytes of imitated records")
    return bytes(body)


def segment(case: Case, count: int, base: int) -> bytes:
    """Return a segment of `count` records at physical offset `base`, most of them mutated."""
    dice, data, real = case.dice, bytearray(), real_fields()
    for place in range(count):
        fields = dice.choice(real)
        case.tell(f"record {place} at {len(data)}:")
        way = dice.randrange(5)
        if way < 2:
            new = bytearray(well_formed(case, fields, base + len(data)))
        else:
            new = bytearray(record.encode(**fields, physical_offset=base + len(data)))
        if way in (1, 2, 3):
            donor = record.encode(**dice.choice(real), physical_offset=base)
            for _ in range(dice.choice((1, 1, 2))):
                case.tell(change(dice, new, record_fields(bytes(new)), donor))
        if way < 4:
            case.feed(len(new))
        data += new
    data += tail(case)
    return bytes(data)


def tail(case: Case) -> bytes:
    """Return what may follow the last record of a segment."""
    length = case.dice.choice((8, 9, 100, 4000))
    end = case.dice.choice(
        (
            b"",
            record.encode_blank(length),
            record.encode_blank(length) + b"\0",
            record.encode_blank(length)[:-1],
            bytes(length),
            b"?" * length,
            record.V1_MAGIC.to_bytes(4, "big") * (length // 4),
        )
    )
    case.tell(f"then {len(end)} bytes {end[:8].hex()}")
    return end
