"""What is sent keeps to the windows of the client."""

from __future__ import annotations

import pytest

from mqlake.grpc.http2 import frames
from mqlake.grpc.http2.frames import FIRST_WINDOW, LARGEST_WINDOW, Http2Error
from mqlake.grpc.http2.sending import LARGEST_FRAME, SendWindows, StreamOutput

MANY = 1 << 30


def taken(windows: SendWindows, most: int = MANY) -> list[tuple[int, int]]:
    """Return the streams and the sizes of the frames that may be sent now."""
    data, at = b"".join(windows.take(most, 1.0)[0]), 0
    found: list[tuple[int, int]] = []
    while at < len(data):
        start, _, stream = frames.HEAD.unpack_from(data, at)
        found.append((stream, start >> 8))
        at += 9 + (start >> 8)
    return found


def test_streams_take_turns() -> None:
    windows = SendWindows()
    one, other = (StreamOutput(number, MANY) for number in (1, 3))
    windows.add(one, bytes(20_000), 0.0)
    windows.add(other, bytes(20_000), 0.0)
    assert taken(windows) == [(1, 16_384), (3, 16_384), (1, 3616), (3, 3616)]
    assert windows.waiting == one.waiting == other.waiting == 0


def test_no_more_is_sent_than_the_connection_allows() -> None:
    windows = SendWindows()
    output = StreamOutput(1, MANY)
    windows.add(output, bytes(FIRST_WINDOW + 10), 0.0)
    assert sum(size for _, size in taken(windows)) == FIRST_WINDOW
    assert taken(windows) == []
    windows.widen(4)
    assert taken(windows) == [(1, 4)]
    assert windows.waiting == 6


def test_no_more_is_sent_than_the_stream_allows() -> None:
    windows = SendWindows()
    output = StreamOutput(1, 3)
    windows.add(output, b"12345", 0.0)
    assert taken(windows) == [(1, 3)]
    assert output.widen(-1)
    windows.resume(output)
    assert taken(windows) == []
    assert output.widen(2)
    windows.resume(output)
    assert taken(windows) == [(1, 1)]


def test_the_end_follows_what_waits() -> None:
    windows, last = SendWindows(), frames.reset(1, frames.ErrorCode.NO_ERROR)
    output = StreamOutput(1, 1)
    windows.add(output, b"12", 0.0)
    output.finish(last)
    assert not b"".join(windows.take(MANY, 1.0)[0]).endswith(last)
    assert output.widen(1)
    windows.resume(output)
    assert b"".join(windows.take(MANY, 1.0)[0]).endswith(b"2" + last)


@pytest.mark.parametrize("size", [0, 10])
def test_a_small_response_is_sent_at_once(size: int) -> None:
    windows, output = SendWindows(), StreamOutput(1, 10)
    assert windows.takes_at_once(size, output)
    assert (windows.window, output.window) == (FIRST_WINDOW - size, 10 - size)


def test_nothing_overtakes_what_waits() -> None:
    windows, output = SendWindows(), StreamOutput(1, 10)
    windows.add(output, b"1", 0.0)
    assert not windows.takes_at_once(1, output)
    assert not windows.takes_at_once(11, StreamOutput(3, 10))
    assert not windows.takes_at_once(16_385, StreamOutput(3, MANY))


def test_what_a_stream_has_yet_to_send_can_be_dropped() -> None:
    windows, output = SendWindows(), StreamOutput(1, 10)
    windows.add(output, b"12345", 0.0)
    windows.drop(output)
    assert windows.waiting == 0
    assert taken(windows) == []


def test_windows_have_a_largest_size() -> None:
    windows, output = SendWindows(), StreamOutput(1, LARGEST_WINDOW)
    assert not output.widen(1)
    windows.widen(LARGEST_WINDOW - FIRST_WINDOW)
    with pytest.raises(Http2Error, match="a window of"):
        windows.widen(1)


def test_frames_are_no_larger_than_other_streams_can_wait_for() -> None:
    windows = SendWindows()
    windows.set_largest(1 << 24)
    assert windows.largest == LARGEST_FRAME
