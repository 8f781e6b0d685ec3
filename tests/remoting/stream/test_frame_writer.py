from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mqlake.remoting.stream.frame_writer import FrameWriter
from mqlake.remoting.stream.wire import Wire


class _Transport(asyncio.Transport):
    """Keeps what is written, of which some bytes wait."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.waiting = 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))


class _Loop(asyncio.SelectorEventLoop):
    def time(self) -> float:
        return 100.0


@pytest.fixture
def transport() -> _Transport:
    return _Transport()


@pytest.fixture
def writer(transport: _Transport) -> FrameWriter:
    loop = _Loop()
    loop.close()
    wire = Wire(loop)
    wire.begin(transport)
    return FrameWriter(wire)


def test_frames_are_written_in_one_call(writer: FrameWriter, transport: _Transport) -> None:
    assert writer.add(b"one")
    assert not writer.add(b"two")
    assert writer.size == writer.held == 6
    assert writer.write() == 6
    assert transport.written == [b"onetwo"]
    assert writer.size == 0
    assert writer.write() == 0
    assert transport.written == [b"onetwo"]


def test_the_rest_of_a_frame_comes_before_all_others(
    writer: FrameWriter, transport: _Transport
) -> None:
    writer.add(b"following")
    assert not writer.add_rest(b"rest, ")
    writer.write()
    assert transport.written == [b"rest, following"]


def test_an_empty_frame_leaves_the_next_one_the_first(writer: FrameWriter) -> None:
    assert writer.add(b"")
    assert writer.add(b"one")


def test_what_waits_for_a_choked_connection_is_held_and_grows_greedy(
    writer: FrameWriter, transport: _Transport
) -> None:
    transport.waiting = 1000
    writer.add(b"frame")
    assert writer.unsent == 1005
    assert writer.held == 5
    assert writer.greed(110.0, 0.5) == 0.0
    writer.choke(100.0)
    assert writer.held == 1005
    assert writer.greed(100.2, 0.5) == 0.0
    assert writer.greed(101.0, 0.5) < writer.greed(102.0, 0.5)


def test_callbacks_come_in_order_until_the_connection_is_choked_again(
    writer: FrameWriter,
) -> None:
    called: list[int] = []
    writer.choke(100.0)

    def choke_again() -> None:
        called.append(1)
        writer.choke(101.0)

    writer.when_writable(choke_again)
    writer.when_writable(lambda: called.append(2))
    writer.unchoke()
    writer.call_back()
    assert called == [1]
    writer.unchoke()
    writer.call_back()
    assert called == [1, 2]


def test_nobody_is_called_back_once_the_connection_has_ended(writer: FrameWriter) -> None:
    called: list[int] = []
    writer.choke(100.0)
    writer.when_writable(lambda: called.append(1))
    writer.clear()
    writer.unchoke()
    writer.call_back()
    assert called == []
