"""Making records of many messages: the compiled kernels and their twin, against plain encoding."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.dispatch.drafts import DRAFT, Drafts, Routes
from mqlake.dispatch.kernel import Kernel, load
from mqlake.dispatch.writing.encode import (
    QueueRoute,
    draft_batch,
    make_routes,
    state_crcs,
    write_records,
)
from mqlake.errors import FormatError
from mqlake.formats import record, record_crc
from mqlake.formats.host import encode_host
from mqlake.formats.message_batch import decode_batch, encode_batch

NOW = 1_800_000_000_000
STORE = "127.0.0.1:10911"
LEAD = 16
USUAL: dict[str, Any] = {
    "topic": "T",
    "body": b"body",
    "properties": b"",
    "queue_id": 0,
    "flag": 0,
    "sys_flag": 0,
    "born_timestamp": 0,
    "born_host": STORE,
    "reconsume_times": 0,
    "prepared_transaction_offset": 0,
    "regular": 1,
}
_BYTES = ("body", "properties")
_NAMES = ("topic", "born_host")


def message(**changes: Any) -> dict[str, Any]:
    return USUAL | changes


def drafted(messages: Sequence[dict[str, Any]], next_offset: int = 7) -> tuple[Drafts, Routes]:
    """Return drafts of messages, and their routes."""
    rows = np.zeros(len(messages), DRAFT)
    texts = {name: bytearray(LEAD) for name in _BYTES}
    queues, hosts = dict[tuple[str, int], int](), dict[str, int]()
    for row, values in zip(rows, messages, strict=True):
        for name in _BYTES:
            row[f"{name}_at"], row[f"{name}_length"] = len(texts[name]), len(values[name])
            texts[name] += values[name]
        for name in USUAL.keys() - {*_BYTES, *_NAMES}:
            row[name] = values[name]
        queue = values["topic"], values["queue_id"]
        row["queue"] = queues.setdefault(queue, len(queues))
        row["host"] = hosts.setdefault(values["born_host"], len(hosts))
    # A kernel is compiled again for bytes that it may change.
    views = (memoryview(texts[name]).toreadonly() for name in _BYTES)
    source, properties = (np.frombuffer(view, np.uint8) for view in views)
    names = [topic.encode() for topic, _ in queues]
    parts = [QueueRoute(next_offset, record.V1_MAGIC, bytes([len(name)]) + name) for name in names]
    routes = make_routes(parts, [encode_host(text) for text in (*hosts, STORE)])
    return Drafts(source, properties, rows), routes


def write(
    messages: Sequence[dict[str, Any]],
    kernel: Kernel,
    room: int = 1 << 16,
    *,
    append_crc: bool = True,
) -> tuple[list[record.Record], int]:
    """Write messages of any topics; return the records, and how many messages there were."""
    drafts, routes = drafted(messages)
    target = np.zeros(5 + room, np.uint8)
    reached, end = write_records(
        target, 5, 5 + room, 1000, drafts, 0, routes, NOW, kernel, append_crc=append_crc
    )
    assert not target[end:].any()
    found: list[record.Record] = []
    at = 5
    while at < end:
        found.append(record.decode(target.data, at))
        at += found[-1].size
    assert drafts.rows[:reached]["size"].tolist() == [one.size for one in found]
    return found, reached


@pytest.mark.parametrize("append_crc", [False, True])
def test_records_are_what_the_format_says(append_crc: bool, kernel: Kernel) -> None:
    values = {
        "topic": "Тема",
        "body": b"text",
        "queue_id": 70_000,
        "flag": -(1 << 31),
        "sys_flag": 8,
        "born_timestamp": 5,
        "born_host": "[fd00:0:0:0:0:0:0:1]:2",
        "reconsume_times": 300,
        "prepared_transaction_offset": 1 << 40,
    }
    (first, second), _ = write(
        [
            message(),
            message(properties=b"\xc3\xa9\x011\x02KEYS\x01k  l\x02", **values),
        ],
        kernel,
        append_crc=append_crc,
    )
    assert first.physical_offset == 1005
    assert second == record.decode(
        record.encode(
            **values,
            properties={"é": "1", "KEYS": "k  l"},
            queue_offset=7,
            physical_offset=1005 + first.size,
            store_timestamp=NOW,
            store_host=STORE,
            append_crc=append_crc,
        )
    )


PROPERTIES = [b"", b"a\x01b", b"a\x01b\x02", b"\0" * 600, b"\x02", b"a#" * 40, b"__CRC32#", b"\xff"]


@pytest.mark.parametrize("append_crc", [False, True])
def test_records_have_the_bytes_that_the_format_says(append_crc: bool, kernel: Kernel) -> None:
    """The bodies have lengths of which the CRC is computed in different ways."""
    target = np.zeros(1 << 18, np.uint8)
    bodies = [bytes(range(size % 251)) + bytes(size // 2) for size in range(0, 400, 7)]
    found = [
        message(body=body, born_host="1.2.3.4:5", properties=PROPERTIES[number % len(PROPERTIES)])
        for number, body in enumerate(bodies)
    ]
    drafts, routes = drafted(found, 0)
    reached, end = write_records(
        target, 0, len(target), 0, drafts, 0, routes, NOW, kernel, append_crc=append_crc
    )
    expected = b""
    for number, one in enumerate(found):
        expected += record.encode(
            topic="T",
            body=one["body"],
            properties=one["properties"],
            queue_offset=number,
            physical_offset=len(expected),
            born_timestamp=NOW,
            born_host="1.2.3.4:5",
            store_timestamp=NOW,
            store_host=STORE,
            append_crc=append_crc,
        )
    assert reached == len(found)
    assert target[:end].tobytes() == expected
    rows = drafts.rows
    data = target[:end].copy()
    if append_crc:
        data[rows["physical_offset"] + record.QUEUE_ID_AT] ^= 1
        changed = bytes(data)
        state_crcs(data, rows["physical_offset"].copy(), rows["size"].copy(), kernel)
        for at, size in zip(rows["physical_offset"].tolist(), rows["size"].tolist(), strict=True):
            own = bytes(data[at : at + size])
            assert own[: -record_crc.SIZE] == changed[at : at + size - record_crc.SIZE]
            assert own != changed[at : at + size]
            stated = record_crc.stated(own[-record_crc.SIZE :])
            assert stated == zlib.crc32(own[: -record_crc.SIZE]) & record_crc.MASK


@pytest.mark.parametrize(
    ("properties", "append_crc", "is_written"),
    [
        (b"b" * 32767, False, True),
        (b"b" * 32748, True, False),
        (b"b" * 32747, True, False),
        (b"b" * 32746, True, True),
        (b"b" * 32746 + b"\x02", True, True),
    ],
)
def test_the_record_crc_needs_room(
    properties: bytes, append_crc: bool, is_written: bool, kernel: Kernel
) -> None:
    long = message(properties=properties)
    found, reached = write([message(), long], kernel, append_crc=append_crc)
    assert len(found) == reached == 1 + is_written


def test_queue_offsets_go_on_by_queue_but_not_for_half_messages(kernel: Kernel) -> None:
    found, _ = write(
        [
            message(),
            message(queue_id=1),
            message(sys_flag=4),
            message(),
            message(sys_flag=12),
            message(topic="T2", sys_flag=8),
            message(),
        ],
        kernel,
    )
    assert [one.queue_offset for one in found] == [7, 7, 0, 8, 0, 7, 9]


def test_writing_ends_where_the_next_does_not_fit(kernel: Kernel) -> None:
    ((one,), _) = write([message()], kernel)
    for room, count in ((3 * one.size, 3), (3 * one.size - 1, 2), (one.size - 1, 0)):
        found, reached = write([message()] * 5, kernel, room)
        assert len(found) == reached == count


def test_writing_ends_before_a_draft_that_is_not_regular(kernel: Kernel) -> None:
    found, reached = write([message(), message(regular=0), message()], kernel)
    assert (len(found), reached) == (1, 1)


def test_a_queue_or_a_host_that_is_not_taken_ends_the_writing(kernel: Kernel) -> None:
    drafts, _ = drafted([message(), message(topic="U", born_host="1.2.3.4:5")])
    good = QueueRoute(0, record.V1_MAGIC, b"\1T")
    host = encode_host(STORE)
    for queue, born in ((good._replace(part=None), host), (good, None)):
        routes = make_routes([good, queue], [host, born, host])
        target = np.zeros(1000, np.uint8)
        reached, _ = write_records(
            target, 0, 1000, 0, drafts, 0, routes, NOW, kernel, append_crc=True
        )
        assert reached == 1


I32, I64 = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)
MESSAGES = st.fixed_dictionaries(
    {
        "topic": st.sampled_from(["T", "U" * 40, "V" * 127]),
        "body": st.binary(max_size=300),
        "properties": st.binary(max_size=300) | st.sampled_from(PROPERTIES),
        "queue_id": st.integers(0, 2),
        "flag": I32,
        "sys_flag": I32,
        "born_timestamp": I64,
        "born_host": st.sampled_from([STORE, "1.2.3.4:5", "[fd00:0:0:0:0:0:0:1]:2"]),
        "reconsume_times": I32,
        "prepared_transaction_offset": I64,
        "regular": st.sampled_from([1, 1, 1, 0]),
    }
)


@given(st.lists(MESSAGES, max_size=20), st.integers(0, 5000), st.booleans())
def test_the_twins_agree_on_any_messages(
    found: list[dict[str, Any]], room: int, append_crc: bool
) -> None:
    answers = []
    for name in ("compiled", "reference"):
        (drafts, routes), target = drafted(found), np.zeros(room, np.uint8)
        first, outcome = 0, list[tuple[int, int]]()
        while first < len(found):
            to = outcome[-1][1] if outcome else 0
            reached = write_records(
                target, to, room, 77, drafts, first, routes, NOW, load(name), append_crc=append_crc
            )
            outcome.append(reached)
            first = reached[0] + 1
        answers.append((outcome, target.tobytes(), routes.queues.tolist()))
    assert answers[0] == answers[1]


@given(st.data())
def test_batches_are_laid_out_as_they_are_read(data: st.DataObject) -> None:
    parts = st.tuples(
        st.integers(-(1 << 31), (1 << 31) - 1), st.binary(max_size=9), st.binary(max_size=9)
    )
    body = bytearray(encode_batch(data.draw(st.lists(parts, max_size=5))))
    for _ in range(data.draw(st.integers(0, 2))):
        if body:
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    mutated = bytes(body[: data.draw(st.integers(0, len(body)) | st.just(len(body)))])
    try:
        expected = list(decode_batch(mutated))
    except FormatError:
        expected = None
    for name in ("compiled", "reference"):
        drafts = draft_batch(mutated, load(name))
        assert (drafts is None) == (expected is None)
        if drafts and expected is not None:
            rows, source = drafts.rows, drafts.source.tobytes()
            assert rows["regular"].all()
            assert rows["flag"].tolist() == [part.flag for part in expected]
            for row, part in zip(rows, expected, strict=True):
                for what in ("body", "properties"):
                    at, length = int(row[f"{what}_at"]), int(row[f"{what}_length"])
                    start = getattr(part, f"{what}_at")
                    assert length == getattr(part, f"{what}_length")
                    assert source[at : at + length] == mutated[start : start + length]
