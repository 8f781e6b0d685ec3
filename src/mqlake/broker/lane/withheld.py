"""Answers that the lane withholds until their messages are on the disk or on slaves.

They are written when their messages are put, as if nothing will fail. If something does, they are
read again, and changed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mqlake.broker.send.unconfirmed import Unconfirmed
from mqlake.broker.state.broker_state import BrokerState
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.frames import decode, encode
from mqlake.remoting.connection import Peer
from mqlake.remoting.greed import REQUEST
from mqlake.remoting.server import RemotingServer
from mqlake.store.append.put_result import PutResult, PutStatus

if TYPE_CHECKING:
    from mqlake.broker.lane.kernel import LaneKernel

_CODES = int(RequestCode.SEND_MESSAGE_V2), int(RequestCode.SEND_BATCH_MESSAGE)
"""Of a single message, and of a batch."""

_log = logging.getLogger(__name__)

Failed = Callable[[Command, PutResult], Command]
"""See `Answers.failed`."""


class Withheld(NamedTuple):
    """What was put of one connection.

    Attributes:
        answers: the frames that answer it if all goes well.
        ends: the physical offset after each send.
        batches: whether each is a batch: 0 or 1.
    """

    peer: Peer
    answers: bytes
    ends: list[int]
    batches: list[int]

    def note(self, sign: int) -> None:
        """Count what waits (1), or no longer does (-1), with its connection.

        Each request counts as REQUEST bytes; the answer to a batch may have more.
        """
        waiting = len(self.ends)
        more = max(0, len(self.answers) - REQUEST * waiting)
        self.peer.wait(sign * waiting, sign * more)


class WithheldAnswers:
    """Sends answers once their messages are confirmed."""

    def __init__(self, state: BrokerState, server: RemotingServer, waiting: Unconfirmed) -> None:
        self._appends, self._watermarks = state.store.appends, state.store.watermarks
        self._put_times, self._server, self._waiting = state.stats.put_times, server, waiting

    def take(
        self, kernel: LaneKernel, peer_of: Callable[[int], Peer | None], failed: Failed
    ) -> None:
        """Send the answers of a kernel once their messages are confirmed.

        Args:
            peer_of: returns the connection with a number.
            failed: see `add`.
        """
        withheld = [
            Withheld(peer, one.answers, one.ends, one.batches)
            for one in kernel.withheld()
            if (peer := peer_of(one.connection)) is not None
        ]
        kernel.note_taken()
        if not withheld:
            return
        self.add(withheld, failed)
        for one in withheld:
            if not one.peer.inlet.may_be_read_directly:
                one.peer.inlet.read_indirectly()

    def add(self, withheld: Sequence[Withheld], failed: Failed) -> None:
        """Send answers once their messages are confirmed; one task waits for all of them.

        Args:
            withheld: in the order of the log.
            failed: makes the answers to sends that are not confirmed.
        """
        begin, last = time.perf_counter(), withheld[-1].ends[-1]
        if self._watermarks.is_confirmed(_result_at(last)):
            for one in withheld:
                self._answer(one, begin)
            return
        for one in withheld:
            one.note(1)
        count = sum(len(one.ends) for one in withheld)
        self._waiting.answer(count, self._answer_once_confirmed(withheld, last, failed, begin))

    async def _answer_once_confirmed(
        self, withheld: Sequence[Withheld], last: int, failed: Failed, begin: float
    ) -> None:
        try:
            (result,) = await self._appends.confirm([_result_at(last)])
        except Exception as error:  # noqa: BLE001 (no dispatcher answers these requests)
            _log.error("sends failed", exc_info=error)
            remark = f"{type(error).__name__}: {error}"
            for one in withheld:
                answers = [
                    response(answer, ResponseCode.SYSTEM_ERROR, remark=remark)
                    for answer in _commands(one.answers)
                ]
                self._answer_each(one, answers, begin)
        else:
            for one in withheld:
                if result.is_ok or self._watermarks.is_confirmed(_result_at(one.ends[-1])):
                    self._answer(one, begin)
                else:
                    self._answer_each(one, self._with_failures(one, failed, result), begin)
        finally:
            for one in withheld:
                one.note(-1)

    def _answer(self, one: Withheld, begin: float) -> None:
        took = time.perf_counter() - begin
        self._put_times.add(took, len(one.ends))
        batches = sum(one.batches)
        for code, count in zip(_CODES, (len(one.ends) - batches, batches), strict=True):
            if count:
                self._server.note_answered(code, 0, took, count, one.peer.address)
        one.peer.send(one.answers)

    def _answer_each(self, one: Withheld, answers: Sequence[Command], begin: float) -> None:
        took, address = time.perf_counter() - begin, one.peer.address
        self._put_times.add(took, len(one.ends))
        for answer, is_batch in zip(answers, one.batches, strict=True):
            self._server.note_answered(_CODES[is_batch], answer.code, took, 1, address)
        one.peer.send(b"".join(map(encode, answers)))

    def _with_failures(self, one: Withheld, failed: Failed, last: PutResult) -> list[Command]:
        """Return the answers if the last send has a failure: slaves may have the first ones."""
        is_confirmed = self._watermarks.is_confirmed
        return [
            answer if is_confirmed(_result_at(end)) else failed(answer, last)
            for answer, end in zip(_commands(one.answers), one.ends, strict=True)
        ]


def _result_at(end: int) -> PutResult:
    """Return the result of a put whose last record ends at a physical offset."""
    return PutResult(PutStatus.PUT_OK, end, count=1)


def _commands(frames: bytes) -> Iterator[Command]:
    at = 0
    while at < len(frames):
        end = at + 4 + int.from_bytes(frames[at : at + 4])
        yield decode(frames[at:end])
        at = end
