"""Reports and frames of replication: docs/formats/replication.md."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqlake.errors import FormatError
from mqlake.protocol.replication.frames import (
    HEAD_SIZE,
    LONGEST_BODY,
    NOT_COUNTED,
    REPORT_SIZE,
    MasterFrameReader,
    Piece,
    ReportReader,
    encode_head,
    encode_report,
    joined,
)

BODIES = st.lists(st.binary(max_size=40), max_size=8)
OFFSETS = st.integers(0, (1 << 63) - 1 - LONGEST_BODY)


def cut(data: bytes, at: list[int]) -> list[bytes]:
    """Return the parts of bytes that arrive in several reads."""
    edges = [0, *sorted(min(each, len(data)) for each in at), len(data)]
    return [data[a:b] for a, b in pairwise(edges) if a < b]


def test_layouts_of_reports_and_frames() -> None:
    assert encode_report(0x0102030405060708) == bytes(range(1, 9))
    assert encode_head(1, 2) == bytes((0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2))
    assert (REPORT_SIZE, HEAD_SIZE) == (8, 12)


@given(st.lists(OFFSETS, min_size=1, max_size=8), st.lists(st.integers(0, 64)))
def test_reports_may_be_cut_anywhere(offsets: list[int], at: list[int]) -> None:
    reader, found = ReportReader(), list[int]()
    for part in cut(b"".join(map(encode_report, offsets)), at):
        found += reader.feed(part)
    assert found[0] == offsets[0]
    assert found[-1] == offsets[-1]
    assert set(found) <= set(offsets)


@pytest.mark.parametrize("data", [b"\xff" * 8, b"GET / HT", b"\x7f" + b"\xff" * 7])
def test_invalid_reports_are_refused(data: bytes) -> None:
    if data.startswith(b"G"):
        assert ReportReader().feed(data)  # an offset beyond any log: whoever has one refuses it
        return
    with pytest.raises(FormatError, match="report"):
        ReportReader().feed(data)


@given(OFFSETS, BODIES, st.lists(st.integers(0, 400)))
def test_frames_may_be_cut_anywhere(start: int, bodies: list[bytes], at: list[int]) -> None:
    data, offset = b"", start
    for body in bodies:
        data += encode_head(offset, len(body)) + body
        offset = min(offset + len(body), (1 << 63) - 1 - LONGEST_BODY)
    reader, joined, beats = MasterFrameReader(), b"", 0
    for part in cut(data, at):
        for piece in reader.feed(part):
            joined += piece.data
            beats += not piece.data
    assert joined == b"".join(bodies)
    assert beats == bodies.count(b"")


@given(st.lists(st.integers(0, 60)))
def test_pieces_say_where_they_are(at: list[int]) -> None:
    reader, found = MasterFrameReader(), {}
    for part in cut(encode_head(100, 30) + bytes(range(30)), at):
        for piece in reader.feed(part):
            found |= {piece.offset + n: byte for n, byte in enumerate(piece.data)}
    assert found == {100 + n: n for n in range(30)}


@pytest.mark.parametrize(
    "head", [encode_head(-1, 0), encode_head(0, -1), encode_head((1 << 63) - 1, 5)]
)
def test_an_invalid_head_of_a_frame_is_refused(head: bytes) -> None:
    with pytest.raises(FormatError, match="frame"):
        list(MasterFrameReader().feed(head))


def test_a_huge_length_takes_no_memory() -> None:
    reader = MasterFrameReader()
    (piece,) = reader.feed(encode_head(7, LONGEST_BODY) + b"abc")
    assert (piece.offset, bytes(piece.data)) == (7, b"abc")


def test_a_report_may_say_that_the_reader_is_not_counted() -> None:
    data = encode_report(7) + encode_report(NOT_COUNTED)
    assert ReportReader().feed(data) == [7, NOT_COUNTED]
    with pytest.raises(FormatError, match="report"):
        ReportReader().feed(encode_report(NOT_COUNTED + 1))


def test_pieces_that_follow_each_other_are_one() -> None:
    def one(offset: int, data: bytes) -> Piece:
        return Piece(offset, memoryview(data))

    given = [one(5, b"ab"), one(7, b"c"), one(8, b""), one(8, b"d"), one(10, b"e")]
    found = [(offset, bytes(data)) for offset, data in joined(given)]
    assert found == [(5, b"abc"), (8, b""), (8, b"d"), (10, b"e")]
    many = [one(at, b"x") for at in range(200)]
    found = [(offset, bytes(data)) for offset, data in joined(many)]
    assert [offset for offset, _ in found] == [0, 64, 128, 192]
    assert b"".join(data for _, data in found) == b"x" * 200
