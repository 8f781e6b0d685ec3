"""Making records of many messages: the compiled kernels and their twin, against plain encoding."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mqlake.dispatch.drafts import FIELDS
from mqlake.dispatch.kernel import Kernel, load
from mqlake.dispatch.writing.encode import (
    QueueRoute,
    draft_batch,
    draft_messages,
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
USUAL = {
    "topic": "T",
    "body": b"body",
    "tags": None,
    "keys": "",
    "properties": None,
    "queue_id": 0,
    "flag": 0,
    "sys_flag": 0,
    "born_timestamp": 0,
    "born_host": "",
    "reconsume_times": 0,
    "prepared_transaction_offset": 0,
    "delay_level": 0,
    "encoded_properties": None,
}


def message(**changes: Any) -> list[Any]:
    """Return a message as it is packed."""
    return [(USUAL | changes)[name] for name in FIELDS]


def write(
    messages: list[Any],
    kernel: Kernel,
    room: int = 1 << 16,
    longest_body: int = 1000,
    *,
    append_crc: bool = True,
) -> tuple[list[record.Record], int]:
    """Write messages of any topics; return the records, and how many messages there were."""
    drafted = draft_messages(messages, longest_body, kernel)
    queues = [
        QueueRoute(7, record.V1_MAGIC, bytes([len(topic)]) + topic)
        for topic in (messages[row][0].encode() for row in drafted.queue_rows)
    ]
    texts = [messages[row][FIELDS.index("born_host")] or STORE for row in drafted.host_rows]
    routes = make_routes(queues, [encode_host(text) for text in (*texts, STORE)])
    target = np.zeros(5 + room, np.uint8)
    reached, end = write_records(
        target, 5, 5 + room, 1000, drafted.drafts, 0, routes, NOW, kernel, append_crc=append_crc
    )
    assert not target[end:].any()
    found: list[record.Record] = []
    at = 5
    while at < end:
        found.append(record.decode(target.data, at))
        at += found[-1].size
    assert drafted.drafts.rows[:reached]["size"].tolist() == [one.size for one in found]
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
            message(tags="A", keys=["k", "", "l"], properties={"é": "1"}, delay_level=12, **values),
        ],
        kernel,
        append_crc=append_crc,
    )
    assert first.physical_offset == 1005
    assert second == record.decode(
        record.encode(
            **values,
            properties={"é": "1", "KEYS": "k  l", "TAGS": "A", "DELAY": "12"},
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
        message(body=body, encoded_properties=PROPERTIES[number % len(PROPERTIES)])
        for number, body in enumerate(bodies)
    ]
    drafted = draft_messages(found, 1000, kernel)
    routes = make_routes(
        [QueueRoute(0, record.V1_MAGIC, b"\1T")], [encode_host("1.2.3.4:5"), encode_host(STORE)]
    )
    reached, end = write_records(
        target, 0, len(target), 0, drafted.drafts, 0, routes, NOW, kernel, append_crc=append_crc
    )
    expected = b""
    for number, one in enumerate(found):
        expected += record.encode(
            topic="T",
            body=one[FIELDS.index("body")],
            properties=one[FIELDS.index("encoded_properties")],
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
    rows = drafted.drafts.rows
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
    long = message(encoded_properties=properties)
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


UNUSUAL: dict[str, Any] = {
    "another list": ["T"],
    "no list": None,
    "a map": {"topic": "T"},
    "no body": message(body=None),
    "too long a body": message(body=bytes(1001)),
    "a topic that is bytes": message(topic=b"T"),
    "a negative queue": message(queue_id=-1),
    "a flag of 33 bits": message(flag=1 << 31),
    "a time of 64 bits": message(born_timestamp=1 << 63),
    "a boolean": message(queue_id=True),
    "a fraction": message(flag=1.5),
    "an inner batch": message(sys_flag=128),
    "its properties": message(properties={"INNER_NUM": "2"}),
    "its properties as sent": message(encoded_properties=b"INNER_NUM\x012"),
    "properties as text": message(encoded_properties="a\x01b\x02"),
    "a record CRC": message(properties={"__CRC32#": "2"}),
    "a record CRC as sent": message(encoded_properties=b"a#__CRC32#\x02__CRC32#\x012"),
    "one at the start": message(encoded_properties=record_crc.encode(7) + b"a\x01b#"),
    "one far behind": message(encoded_properties=b"a#" * 77 + record_crc.encode(7)),
    "long properties": message(encoded_properties=bytes(32768)),
    "a list of numbers": message(keys=[1]),
    "nested lists": message(keys=[["k"], {"a": [1, 2]}]),
    "keys that are none": message(keys=None),
    "tags with a separator": message(tags="\x02"),
    "keys with a separator": message(keys=["\x02"]),
    "a name with a separator": message(properties={"a\x01": "b"}),
    "an empty value": message(properties={"a": ""}),
    "an empty name": message(properties={"": "a"}),
    "a value with a separator": message(properties={"a": "b\x02"}),
    "a number for a value": message(properties={"a": 1}),
    "a number for a map": message(properties=5),
    "a negative delay": message(delay_level=-1),
    "a time": message(born_timestamp=msgspec.msgpack.Ext(5, b"xyz")),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_is_unusual_is_left_and_what_follows_is_found(name: str, kernel: Kernel) -> None:
    drafted = draft_messages([message(), UNUSUAL[name], message(flag=3)], 1000, kernel)
    assert drafted.drafts.rows["regular"].tolist() == [1, 0, 1]
    assert drafted.drafts.rows["flag"][2] == 3
    found, reached = write([message(), UNUSUAL[name], message()], kernel)
    assert (len(found), reached) == (1, 1)


def test_a_queue_or_a_host_that_is_not_taken_ends_the_writing(kernel: Kernel) -> None:
    drafted = draft_messages([message(), message(topic="U", born_host="x")], 1000, kernel)
    good = QueueRoute(0, record.V1_MAGIC, b"\1T")
    host = encode_host(STORE)
    for queue, born in ((good._replace(part=None), host), (good, None)):
        routes = make_routes([good, queue], [host, born, host])
        target = np.zeros(1000, np.uint8)
        reached, _ = write_records(
            target, 0, 1000, 0, drafted.drafts, 0, routes, NOW, kernel, append_crc=True
        )
        assert reached == 1


TEXTS = st.text(st.sampled_from("ab é\x01\x02𝄞"), max_size=40)
NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.sampled_from(
    [
        sign * (1 << bits) + more
        for bits in (7, 8, 15, 16, 31)
        for sign in (1, -1)
        for more in (-1, 0)
    ]
)
VALUES = st.none() | st.booleans() | st.floats() | NUMBERS | TEXTS | st.binary(max_size=300)
FIELDS_OF: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(["T", "U" * 40]),
    "body": st.binary(max_size=300),
    "tags": st.none() | TEXTS,
    "keys": TEXTS | st.lists(TEXTS, max_size=20),
    "properties": st.none() | st.dictionaries(TEXTS, TEXTS, max_size=20),
    "queue_id": st.integers(0, 2),
    "born_host": st.sampled_from(["", "1.2.3.4:5", "[fd00:0:0:0:0:0:0:1]:2"]),
    "encoded_properties": st.none()
    | st.binary(max_size=300)
    | st.lists(st.sampled_from([b"#", b"__CRC32#", b"\x01", b"\x02", b"a\x01b"])).map(b"".join),
    **dict.fromkeys(("flag", "sys_flag", "reconsume_times"), st.integers(-(1 << 31), 1 << 31)),
    **dict.fromkeys(
        ("born_timestamp", "prepared_transaction_offset"), st.integers(-(1 << 63), 1 << 63)
    ),
    "delay_level": st.integers(-1, 20),
}


@st.composite
def messages(draw: st.DrawFn) -> Any:
    if draw(st.integers(0, 20)) == 0:
        return draw(VALUES | st.lists(VALUES, max_size=20))
    values = {name: draw(FIELDS_OF[name]) for name in FIELDS}
    if draw(st.booleans()):
        values[draw(st.sampled_from(FIELDS))] = draw(VALUES | st.lists(VALUES, max_size=20))
    return list(values.values())


@given(st.lists(messages(), max_size=20), st.integers(0, 5000), st.booleans())
@example(found=[message(tags=False)], room=0, append_crc=False)
def test_the_twins_agree_on_any_messages(found: list[Any], room: int, append_crc: bool) -> None:
    answers = []
    for name in ("compiled", "reference"):
        kernel = load(name)
        drafted = draft_messages(found, 250, kernel)
        rows = drafted.drafts.rows
        queues = [QueueRoute(3, record.V1_MAGIC, b"\1T") for _ in drafted.queue_rows]
        hosts = [encode_host("1.2.3.4:5")] * (len(drafted.host_rows) + 1)
        routes = make_routes(queues, hosts)
        target = np.zeros(room, np.uint8)
        first, outcome = 0, list[tuple[int, int]]()
        while first < len(rows):
            to = outcome[-1][1] if outcome else 0
            outcome.append(
                write_records(
                    target,
                    to,
                    room,
                    77,
                    drafted.drafts,
                    first,
                    routes,
                    NOW,
                    kernel,
                    append_crc=append_crc,
                )
            )
            first = outcome[-1][0] + 1
        answers.append(
            (
                drafted.queue_rows,
                drafted.host_rows,
                rows["regular"].tolist(),
                outcome,
                target.tobytes(),
            )
        )
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
