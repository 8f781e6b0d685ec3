"""What masters and slaves under a controller send each other (docs/formats/replication.md).

No I/O. Upstream: `AutoSwitchHAClient`, `AutoSwitchHAConnection`, `HAConnectionState`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from mqlake.errors import FormatError
from mqlake.formats import epoch_file
from mqlake.formats.epoch_file import Epoch
from mqlake.protocol.replication.frames import LONGEST_BODY, Piece

_STATE = Struct(">i")
_HANDSHAKE = Struct(
    ">"
    "i"  # state: HANDSHAKE
    "h"  # 1: begin with the master's last file
    "h"  # 1: an asynchronous learner, which is never in sync
    "q"  # the slave's broker id
)
_REPORT = Struct(
    ">"
    "i"  # state: TRANSFER
    "q"  # the slave's physical offset
)
_ANSWER = Struct(
    ">"
    "i"  # state: HANDSHAKE
    "i"  # bytes of the epochs that follow
    "q"  # physical offset at which the master's log ends
    "i"  # the master's last epoch
)
_HEAD = Struct(
    ">"
    "i"  # state: TRANSFER
    "i"  # bytes of the body
    "q"  # physical offset of the first byte of the body
    "i"  # epoch of the body
    "q"  # physical offset of that epoch's first byte
    "q"  # the master's confirm offset
)
_EPOCH = Struct(
    ">"
    "i"  # number
    "q"  # physical offset of its first byte
)
MOST_EPOCHS = 1000
"""How many epochs a handshake has at most: the newest ones."""
_LAST = (1 << 63) - 1 - LONGEST_BODY


class ConnectionState(IntEnum):
    """What a message is about."""

    HANDSHAKE = 1
    TRANSFER = 2


class Handshake(NamedTuple):
    """What a slave says first."""

    broker_id: int
    from_last_file: bool = False
    is_learner: bool = False


class HandshakeAnswer(NamedTuple):
    """What a master answers.

    Attributes:
        end: physical offset at which its log ends.
        epochs: the epochs of its log, ascending.
    """

    end: int
    epochs: tuple[Epoch, ...]


class EpochPiece(NamedTuple):
    """What a frame brings.

    Attributes:
        piece: log bytes of the frame, or some of them.
        epoch: in which the bytes were written.
        confirmed: physical offset before which every broker that may be elected has the log.
    """

    piece: Piece
    epoch: Epoch
    confirmed: int


def encode_handshake(handshake: Handshake) -> bytes:
    """Return a slave's first message."""
    flags = int(handshake.from_last_file), int(handshake.is_learner)
    return _HANDSHAKE.pack(ConnectionState.HANDSHAKE, *flags, handshake.broker_id)


def encode_report(offset: int) -> bytes:
    """Return a slave's report: the first one asks for the log from there, all acknowledge it."""
    return _REPORT.pack(ConnectionState.TRANSFER, offset)


def encode_answer(answer: HandshakeAnswer) -> bytes:
    """Return a master's answer to a handshake."""
    epochs = answer.epochs[-MOST_EPOCHS:]
    last = epochs[-1].number if epochs else -1
    head = _ANSWER.pack(ConnectionState.HANDSHAKE, len(epochs) * _EPOCH.size, answer.end, last)
    return head + b"".join(_EPOCH.pack(*each) for each in epochs)


def encode_head(offset: int, length: int, epoch: Epoch, confirmed: int) -> bytes:
    """Return the head of a frame with `length` bytes of one epoch from a physical offset on."""
    return _HEAD.pack(ConnectionState.TRANSFER, length, offset, *epoch, confirmed)


class SlaveReader:
    """Read what one slave sends: its handshake, then its reports."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Handshake | int]:
        """Yield the messages that are complete now: a handshake, or the offset of a report.

        Raises:
            FormatError: this is no slave under a controller.
        """
        data, at = self._rest + data, 0
        while len(data) - at >= _STATE.size:
            (state,) = _STATE.unpack_from(data, at)
            size = _size(state, _HANDSHAKE.size, _REPORT.size)
            if len(data) - at < size:
                break
            yield _handshake(data, at) if state == ConnectionState.HANDSHAKE else _report(data, at)
            at += size
        self._rest = data[at:]


def _size(state: int, handshake: int, transfer: int) -> int:
    if state == ConnectionState.HANDSHAKE:
        return handshake
    if state == ConnectionState.TRANSFER:
        return transfer
    raise FormatError(
        f"state {state} instead of a handshake or of a report or frame of the log: is"
        " enableControllerMode the same on both brokers?"
    )


def _handshake(data: bytes, at: int) -> Handshake:
    _, from_last_file, is_learner, broker_id = _HANDSHAKE.unpack_from(data, at)
    if broker_id < 0:
        raise FormatError(f"not the id of a broker: {broker_id}")
    return Handshake(broker_id, from_last_file == 1, is_learner == 1)


def _report(data: bytes, at: int) -> int:
    _, offset = _REPORT.unpack_from(data, at)
    if not 0 <= offset <= _LAST:
        raise FormatError(f"not a physical offset: {offset}")
    return offset


class MasterReader:
    """Read what a master sends, which may arrive cut anywhere: its answer, then frames.

    Holds at most one answer.
    """

    def __init__(self) -> None:
        self._head = b""
        self._offset = self._left = 0
        self._epoch, self._confirmed = Epoch(-1, 0), 0

    def feed(self, data: bytes | memoryview) -> Iterator[HandshakeAnswer | EpochPiece]:
        """Yield what is complete now.

        Raises:
            FormatError: this is no master under a controller; nothing that follows can be read.
        """
        view, at = memoryview(data), 0
        while at < len(view):
            if self._left:
                piece = view[at : at + self._left]
                yield EpochPiece(Piece(self._offset, piece), self._epoch, self._confirmed)
                self._offset += len(piece)
                self._left -= len(piece)
                at += len(piece)
                continue
            part = view[at : at + self._wanted - len(self._head)]
            self._head += part
            at += len(part)
            if len(self._head) < self._wanted:
                continue
            # Whoever reads may stop at any message.
            head, self._head = self._head, b""
            if _STATE.unpack_from(head)[0] == ConnectionState.HANDSHAKE:
                yield _answer(head)
                continue
            self._begin(head)
            if not self._left:
                yield EpochPiece(Piece(self._offset, view[:0]), self._epoch, self._confirmed)

    @property
    def _wanted(self) -> int:
        """Return how many bytes the head has, as far as what is there says."""
        if len(self._head) < _STATE.size:
            return _STATE.size
        (state,) = _STATE.unpack_from(self._head)
        size = _size(state, _ANSWER.size, _HEAD.size)
        if state == ConnectionState.TRANSFER or len(self._head) < size:
            return size
        _, length, _, _ = _ANSWER.unpack_from(self._head)
        if not 0 <= length <= MOST_EPOCHS * _EPOCH.size or length % _EPOCH.size:
            raise FormatError(f"not an answer to a handshake: {length} bytes of epochs")
        return size + length

    def _begin(self, head: bytes) -> None:
        _, length, offset, number, start, confirmed = _HEAD.unpack(head)
        # A RocketMQ broker whose log is empty sends -1 in heartbeats.
        least = 0 if length else -1
        if length < 0 or not least <= offset <= _LAST or not least <= start <= _LAST:
            raise FormatError(f"not the head of a frame of a commit log: {head.hex()}")
        self._offset, self._left = max(offset, 0), length
        self._epoch, self._confirmed = Epoch(number, start), confirmed


def _answer(head: bytes) -> HandshakeAnswer:
    _, _, end, _ = _ANSWER.unpack_from(head)
    if not 0 <= end <= _LAST:
        raise FormatError(f"not an answer to a handshake: the log ends at {end}")
    epochs = [Epoch(*pair) for pair in _EPOCH.iter_unpack(head[_ANSWER.size :])]
    _check(epochs)
    return HandshakeAnswer(end, tuple(epochs))


def _check(epochs: Sequence[Epoch]) -> None:
    try:
        epoch_file.check(epochs)
    except FormatError as error:
        raise FormatError(f"not an answer to a handshake: {error}") from None
