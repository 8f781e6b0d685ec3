"""Every decoder on changed bytes of real files: a value or a FormatError, and nothing else."""

from __future__ import annotations

import functools
import itertools
import random
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.formats import (
    abort_file,
    batch_consume_queue,
    checkpoint,
    config,
    consume_queue,
    consume_queue_ext,
    fastjson,
    file_name,
    host,
    index_file,
    java_string,
    message_id,
    properties,
    record,
)
from mqlake.formats.incarnations import EndedIncarnations
from mqlake.formats.record import Fault
from tests.formats.golden_log import golden, records
from tests.formats.java_answers import content

DECODERS: dict[str, Callable[[bytes], object]] = {
    "record.decode": record.decode,
    "record.decode without CRC": lambda data: record.decode(data, crc=False),
    "consume_queue": consume_queue.decode,
    "consume_queue_ext.decode": consume_queue_ext.decode,
    "consume_queue_ext.walk": lambda data: list(consume_queue_ext.walk(data)),
    "batch_consume_queue": batch_consume_queue.decode,
    "index_file.decode_header": index_file.decode_header,
    "index_file.decode_entry": lambda data: index_file.decode_entry(data, 3, 1),
    "index_file.walk_slot": lambda data: list(index_file.walk_slot(data, 3, 1 << 30, 1)),
    "checkpoint": checkpoint.decode,
    "abort_file": abort_file.decode,
    "fastjson": fastjson.loads,
    "host": host.decode_host,
    "java_string": java_string.decode,
    "properties": properties.decode_properties,
    "is_safe_topic": file_name.is_safe_topic,
    "message_id": lambda data: message_id.decode_message_id(data.decode("latin-1")),
    "unique_key": lambda data: message_id.UniqueKey.parse(data.decode("latin-1")),
    **{
        f"config/{name}": lambda data, kind=kind: config.decode(data, kind)
        for name, kind in config.KINDS.items()
    },
    "config/incarnations.json": lambda data: config.decode(data, EndedIncarnations),
}


def survives(decode: Callable[[bytes], object], data: bytes) -> bool:
    try:
        decode(data)
    except FormatError:
        return False
    return True


def changed(data: bytes, dice: random.Random) -> bytes:
    """Return `data` with a few bytes set, cut out, doubled or cut off."""
    new = bytearray(data)
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(new) + 1)
        length = dice.choice([1, 1, 1, 2, 4, 8])
        kind = dice.randrange(5)
        if kind <= 1:
            value = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
            new[at : at + length] = bytes([value]) * min(length, len(new) - at)
        elif kind == 2:
            del new[at : at + length]
        elif kind == 3:
            new[at:at] = new[at : at + length]
        else:
            del new[at:]
    return bytes(new)


@pytest.mark.parametrize("name", [name for name in DECODERS if not name.startswith("config/")])
@given(data=st.binary(max_size=200))
def test_any_bytes(name: str, data: bytes) -> None:
    survives(DECODERS[name], data)


@functools.cache
def real_records() -> list[bytes]:
    """Return 200 short records, of all kinds that the store has."""
    first = [data for _, data in itertools.islice(records("rmq5-clean"), 300)]
    return sorted(first, key=len)[:200]


@pytest.mark.parametrize("name", ["record.decode", "record.decode without CRC"])
def test_changed_records(name: str) -> None:
    dice, good = random.Random(name), 0
    for data in real_records():
        for _ in range(20):
            good += survives(DECODERS[name], changed(data, dice))
    assert 0 < good < 20 * len(real_records())


def test_check_never_passes_a_record_that_decode_refuses() -> None:
    dice = random.Random(5)
    for data in real_records() * 5:
        new = changed(data, dice)
        fault, layout = record.check(new, 0, len(new))
        assert (fault is Fault.GOOD) == survives(record.decode, new)
        if layout:
            assert layout.properties_at + layout.properties_length == layout.size <= len(new)


@pytest.mark.parametrize(
    "name",
    ["config/topics.json", "config/consumerOffset.json", "config/delayOffset.json", "checkpoint"],
)
def test_changed_files_of_a_store(name: str) -> None:
    data = (golden("rmq5-clean").path / name).read_bytes()
    dice = random.Random(name)
    for _ in range(100):
        survives(DECODERS[name], changed(data, dice))


@pytest.mark.parametrize("name", ["consume_queue_ext.walk", "batch_consume_queue"])
def test_changed_queue_files(name: str) -> None:
    data = content(name.removesuffix(".walk") + ".bin")
    dice = random.Random(name)
    for _ in range(400):
        survives(DECODERS[name], changed(data, dice))


def test_a_record_cut_at_every_byte() -> None:
    data = real_records()[0]
    assert [survives(record.decode, data[:end]) for end in range(len(data))] == [False] * len(data)


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 200_000,
        b"{1:" * 60_000,
        b"9" * 200_000,
        b'"' + b"\\n" * 100_000,
        b"[" + b"," * 200_000,
        b"\x80" * 200_000,
        b"\x01\x02" * 100_000,
    ],
)
def test_memory_is_bounded_by_the_input(data: bytes) -> None:
    tracemalloc.start()
    try:
        for name in ("fastjson", "properties", "java_string", "config/topics.json", "abort_file"):
            survives(DECODERS[name], data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 80 * len(data)


def test_lengths_of_gigabytes_allocate_nothing() -> None:
    good = record.encode(topic="Topic", body=b"body")
    body_length_at = record.MIN_SIZE - 1 - 2 - 4
    tracemalloc.start()
    try:
        for at in (0, body_length_at):
            data = good[:at] + b"\x7f\xff\xff\xff" + good[at + 4 :]
            assert not survives(record.decode, data)
        assert list(index_file.walk_slot(bytes(100), 1 << 30, 1 << 30, 0)) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
