"""What the kernel answers is what the decoder of single frames reads, whatever the bytes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlake.broker.pull import patterns, shapes, warm_up
from mqlake.broker.pull.run_table import FEW_LEFT, NOT_COPIED, SERVED, STALE, UNKNOWN_QUEUE, UNLIKE
from mqlake.broker.pull.shapes import Shape, answer_shape, request_shape
from mqlake.errors import FormatError
from mqlake.protocol.command import Command, Serialization, response
from mqlake.protocol.frames import encode
from mqlake.protocol.headers.pull import PullHeader
from mqlake.protocol.template import frame_template
from mqlake.store.reads import copied_ahead
from tests.broker.pull.pulls import pull_header
from tests.broker.pull.test_standing import pull_frame
from tests.protocol.test_golden import golden

KERNEL = warm_up.load()
VERSION, OWNER, BUFFER, QUEUE, FIRST = 5, 9, 1, 3, 40
MOST, MOST_BYTES, SIZES = 4, 100, [10, 20, 30, 40, 50, 60, 5, 5, 5, 5]
FIELDS = {"nextBeginOffset": "%d", "minOffset": "%d", "maxOffset": "%d"}
DATA = bytes(range(sum(SIZES)))


def answered(kind: int) -> Any:
    asked = Command(0, serialization=kind)
    return frame_template(response(asked, header={"topicSysFlag": "0"}, remark="FOUND"), FIELDS)


def shape_of(frame: bytes) -> Shape | None:
    kind, header = frame[4], frame[8:]
    request = patterns.decode(kind, header)
    fields = request.header(PullHeader)
    numbers = fields.queue_id, fields.commit_offset, fields.queue_offset, request.opaque
    return request_shape(header, kind, numbers)


def tables() -> tuple[Any, ...]:
    data = np.zeros(2 * copied_ahead.BUFFER, np.uint8)
    at = BUFFER * copied_ahead.BUFFER
    data[at : at + len(DATA)] = np.frombuffer(DATA, np.uint8)
    ends, copies = np.zeros((2, len(SIZES) + 1), np.int64), np.zeros((2, 6), np.int64)
    ends[BUFFER] = [sum(SIZES[:number]) for number in range(len(SIZES) + 1)]
    copies[BUFFER] = OWNER, FIRST, FIRST + len(SIZES), 7, 1000, VERSION
    return data, ends, copies


def serve(
    data: bytes, shape: Shape, kind: int, version: int = VERSION, queue: int = QUEUE, **cells: int
) -> tuple[int, int, bytes, int, list[list[int]]]:
    """Return how many pulls are served, the position after them, their answers, why no more are,
    and a row for each.
    """
    fields: dict[str, int] = dict.fromkeys(FIELDS, 3)
    sample = answered(kind).fill(3, 3, 3, 8)[8:]
    answer = answer_shape(sample, kind, fields, 8)
    assert answer is not None
    queues = np.array([(1, 0, -1), (queue, BUFFER, OWNER)], np.int64)
    table, ends, copies = tables()
    for name, value in cells.items():
        copies[BUFFER, getattr(copied_ahead, name)] = value
    target, pulls = np.zeros(4096, np.uint8), np.zeros((8, 5), np.int64)
    served, at, end, why, _, _ = KERNEL(
        np.frombuffer(data, np.uint8), 0, kind, shape.text, shape.parts, answer.text, answer.parts,
        queues, MOST, MOST_BYTES, table, ends, copies, version, target, 2048, pulls,
    )  # fmt: skip
    return served, at, target[:end].tobytes(), why, pulls[:served].tolist()


def frame_at(offset: int, kind: int, opaque: int = 17, queue_id: int = QUEUE) -> bytes:
    return pull_frame(opaque, kind, pull_header(offset, queue_id=queue_id, commit_offset=2), 11)


def expected(offset: int, kind: int, opaque: int) -> bytes:
    """Return the answer to a pull from an offset of the copy on."""
    start, count, size = offset - FIRST, 0, 0
    while count < MOST and (count == 0 or size + SIZES[start + count] <= MOST_BYTES):
        size += SIZES[start + count]
        count += 1
    begin = sum(SIZES[:start])
    head = answered(kind).fill(offset + count, 7, 1000, opaque, body=size)
    return head + DATA[begin : begin + size]


@pytest.mark.parametrize("kind", Serialization)
def test_answers_are_those_of_templates(kind: int) -> None:
    offsets = [FIRST, FIRST + 6, FIRST + 3, FIRST + 1]
    frames = [frame_at(offset, kind, 10**number) for number, offset in enumerate(offsets)]
    shape = shape_of(frames[0])
    assert shape is not None
    served, at, answers, why, rows = serve(b"".join(frames), shape, kind)
    assert (served, at, why) == (4, sum(map(len, frames)), SERVED)
    assert answers == b"".join(
        expected(offset, kind, 10**number) for number, offset in enumerate(offsets)
    )
    assert [row[:2] for row in rows] == [[1, 2]] * 4


@pytest.mark.parametrize("kind", Serialization)
def test_why_a_run_ends(kind: int) -> None:
    frame = frame_at(FIRST, kind)
    shape = shape_of(frame)
    assert shape is not None

    def why(data: bytes, **how: int) -> int:
        served, at, answers, reason, _ = serve(data, shape, kind, **how)
        assert (served, at, answers) == (0, 0, b"")
        return reason

    assert why(frame_at(FIRST, kind, queue_id=2)) == UNKNOWN_QUEUE
    assert why(frame_at(FIRST - 1, kind)) == NOT_COPIED
    assert why(frame_at(FIRST + len(SIZES) - MOST + 1, kind)) == NOT_COPIED
    assert why(frame, OWNER=OWNER + 1) == NOT_COPIED
    assert why(frame, version=VERSION + 1) == STALE
    assert why(frame, LOW=FIRST + 1) == FEW_LEFT
    assert why(frame, HIGH=FIRST + MOST - 1) == FEW_LEFT
    assert why(frame[:-1]) == SERVED
    assert why(frame_at(FIRST, 1 - kind)) == UNLIKE
    assert why(pull_frame(17, kind, pull_header(FIRST, queue_id=QUEUE), 361)) == UNLIKE


@pytest.mark.parametrize("kind", ["json", "binary"])
def test_frames_of_the_stock_client_have_shapes(kind: str) -> None:
    frame = golden("pull", kind)
    shape = shape_of(frame)
    assert shape is not None
    header = patterns.decode(frame[4], frame[8:]).header(PullHeader)
    served, _, answers, _, _ = serve(frame, shape, frame[4], queue=header.queue_id, FIRST=0, LOW=0)
    assert (served, answers[8 + len(answers) - 8 - 100 :]) == (1, DATA[:100])


@given(
    st.sampled_from(list(Serialization)),
    st.lists(
        st.tuples(
            st.floats(0, 1),
            st.integers(0, 3),
            st.one_of(st.binary(max_size=3), st.sampled_from((b"0", b"12", b'"', b"-", b"00"))),
        ),
        max_size=3,
    ),
    st.integers(FIRST, FIRST + 6),
)
@settings(deadline=None, max_examples=400)
def test_mutated_frames_are_what_the_decoder_reads(
    kind: int, edits: list[tuple[float, int, bytes]], offset: int
) -> None:
    plain = frame_at(FIRST, kind)
    shape = shape_of(plain)
    assert shape is not None
    frame = bytearray(frame_at(offset, kind))
    for place, removed, added in edits:
        at = int(place * len(frame))
        frame[at : at + removed] = added
    served, at, answers, _, rows = serve(bytes(frame), shape, kind)
    if not served:
        return
    read = patterns.decode(kind, bytes(frame[8:at]))
    header = read.header(PullHeader)
    like = patterns.decode(kind, plain[8:]).header(PullHeader)
    same = msgspec.structs.replace(
        like, queue_offset=header.queue_offset, commit_offset=header.commit_offset
    )
    assert (header, read.code, read.flag, at) == (same, 11, 0, 4 + int.from_bytes(frame[:4]))
    assert rows[0][1] == header.commit_offset
    assert answers == expected(header.queue_offset, kind, read.opaque)


HOSTILE = [
    b'"queueOffset":"40","queueOffset":"41"',
    b'"queueOffset": "40"',
    b'"queueOffset":"040"',
    b'"queueOffset":40',
    b'"queueOffset":"-1"',
    b'"x":{"opaque":17},"queueOffset":"40"',
]


@pytest.mark.parametrize("text", HOSTILE)
def test_untypical_headers_have_no_pattern(text: bytes) -> None:
    plain = frame_at(FIRST, Serialization.JSON)[8:]
    data = plain.replace(b'"queueOffset":"40"', text)
    assert data != plain
    try:
        request = patterns.decode(0, data)
        header = request.header(PullHeader)
    except FormatError:
        return

    class Decided:
        template = answered(0)

    decided: Any = Decided()
    usual = patterns.decode(0, plain)
    assert patterns.pattern_of(plain, usual, usual.header(PullHeader), decided) is not None
    assert patterns.pattern_of(data, request, header, decided) is None
    assert patterns.pattern_of(data, Command(11, 17, 2), header, decided) is None


def test_shapes_write_what_the_kernel_reads() -> None:
    frame = frame_at(FIRST, Serialization.ROCKETMQ)
    shape = shape_of(frame)
    assert shape is not None
    numbers = [0] * shapes.NUMBERS
    numbers[shapes.QUEUE_ID], numbers[shapes.QUEUE_OFFSET] = QUEUE, FIRST + 1
    numbers[shapes.OPAQUE] = 2**31 - 1
    made = encode(patterns.decode(1, shape.fill(numbers)))
    served, _, answers, _, rows = serve(made, shape, 1)
    assert (served, rows[0][1]) == (1, 0)
    assert answers == expected(FIRST + 1, 1, 2**31 - 1)
