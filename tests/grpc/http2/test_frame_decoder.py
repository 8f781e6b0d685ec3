"""Received bytes are cut into frames, however they arrive."""

from __future__ import annotations

import pytest

from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frame_decoder import Frame, FrameDecoder
from mqlake.grpc.http2.frames import ErrorCode, Http2Error

PING = frames.frame(frames.PING, frames.ACK, 0, b"12345678")
DATA = frames.frame(frames.DATA, frames.END_STREAM, 7, b"content")
EXPECTED = [(frames.PING, frames.ACK, 0, b"12345678"), (frames.DATA, 1, 7, b"content")]


def begun() -> FrameDecoder:
    """Return a decoder of a connection that has begun."""
    found = FrameDecoder()
    assert found.receive(frames.PREFACE, 0.0)
    assert found.next() is None
    return found


def all_frames(decoder: FrameDecoder) -> list[Frame]:
    """Return the complete frames."""
    return list(iter(decoder.next, None))


@pytest.mark.parametrize("size", [1, 2, 9, 10, 100])
def test_frames_are_found_in_pieces_of_any_size(size: int) -> None:
    sent, decoder, found = frames.PREFACE + PING + DATA, FrameDecoder(), list[Frame]()
    for at in range(0, len(sent), size):
        if decoder.receive(sent[at : at + size], 1.0):
            found += all_frames(decoder)
    assert found == EXPECTED
    assert decoder.incomplete == decoder.unread == 0


def test_a_reserved_bit_is_no_part_of_the_stream() -> None:
    decoder = begun()
    decoder.receive(frames.frame(frames.DATA, 0, 0x8000_0003, b""), 0.0)
    assert all_frames(decoder) == [(frames.DATA, 0, 3, b"")]


def test_an_incomplete_frame_is_as_old_as_its_first_bytes() -> None:
    decoder = begun()
    assert decoder.receive(DATA[:12], 1.0)
    assert decoder.next() is None
    assert (decoder.incomplete, decoder.began) == (12, 1.0)
    assert not decoder.receive(DATA[12:14], 2.0)
    assert (decoder.incomplete, decoder.began) == (14, 1.0)
    assert decoder.receive(DATA[14:], 3.0)
    assert all_frames(decoder) == [EXPECTED[1]]


def test_an_incomplete_preface_is_as_old_as_its_first_bytes() -> None:
    decoder = FrameDecoder()
    assert not decoder.receive(frames.PREFACE[:3], 5.0)
    assert not decoder.receive(frames.PREFACE[3:5], 6.0)
    assert (decoder.incomplete, decoder.began) == (5, 5.0)


def test_frames_wait_until_they_are_asked_for() -> None:
    decoder = begun()
    decoder.receive(PING + DATA + b"\0", 1.0)
    assert decoder.next() == EXPECTED[0]
    assert (decoder.unread, decoder.has_unread) == (len(DATA) + 1, True)
    assert decoder.next() == EXPECTED[1]
    assert decoder.next() is None
    assert (decoder.unread, decoder.has_unread, decoder.incomplete) == (0, False, 1)


def test_other_protocols_are_noticed_at_their_first_bytes() -> None:
    decoder = FrameDecoder()
    assert not decoder.receive(b"PRI", 0.0)
    with pytest.raises(Http2Error, match="does not begin as HTTP/2: b'PRInt'"):
        decoder.receive(b"nt", 0.0)


def test_a_frame_may_not_be_larger_than_announced() -> None:
    decoder = begun()
    decoder.receive(frames.HEAD.pack(65_537 << 8, 0, 1), 0.0)
    with pytest.raises(Http2Error, match="65537 bytes") as caught:
        decoder.next()
    assert caught.value.code is ErrorCode.FRAME_SIZE_ERROR


def test_nothing_is_held_after_the_end() -> None:
    decoder = begun()
    decoder.receive(PING + DATA[:-1], 0.0)
    decoder.clear()
    assert decoder.incomplete == decoder.unread == 0
    assert decoder.next() is None
