"""Runs of sends that are answered once enough slaves have their messages.

Their answers are written when they are put: that all goes well is usual. Otherwise they are read
again, and changed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.send.run_frames import MOST_SENDS, Run
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.properties import NAME_VALUE_SEPARATOR, WAIT
from mqlake.protocol import binary_header
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.frames import encode, header_at
from mqlake.remoting.connection import Peer
from mqlake.remoting.latencies import RequestKind
from mqlake.store.append.put_result import PutResult, PutStatus

_ASKS = f"{WAIT}{NAME_VALUE_SEPARATOR}".encode()
_WAITS = f"{WAIT}{NAME_VALUE_SEPARATOR}true".encode()
_DOES_NOT = f"{WAIT}{NAME_VALUE_SEPARATOR}false"

_log = logging.getLogger(__name__)

Failed = Callable[[Command, PutResult], Command]
"""See `Answers.failed`."""


class _Waiting(NamedTuple):
    """A run that was put.

    Attributes:
        answers: the frames that answer it if all goes well.
        ends: the physical offset after each send's last message.
        begin: when it was put, as `perf_counter` has it.
        failed: makes the other answers.
        code: that of the requests.
    """

    peer: Peer
    answers: bytes
    ends: list[int]
    begin: float
    failed: Failed
    code: int


class WaitingRuns:
    """Answers runs once they are confirmed.

    Args:
        others: returns how many sends wait that were not put in runs.

    Attributes:
        sends: how many sends wait.
        tasks: wait for them.
    """

    def __init__(
        self, state: BrokerState, runtime: BrokerRuntime, others: Callable[[], int]
    ) -> None:
        self._state, self._runtime = state, runtime
        self._store, self._others = state.store, others
        self._loop = asyncio.get_running_loop()
        self.sends = 0
        self.tasks: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        """Whether a run may be put now that then waits.

        Not if its sends would be refused, or answered at once that slaves are missing.
        """
        if not self._store.watermarks.keeps_at_append or self._store.copies.missing is not None:
            return False
        most = self._runtime.settings.send_thread_pool_queue_capacity
        return self.sends + self._others() + MOST_SENDS <= most

    def add(
        self, peer: Peer, run: Run, answers: bytes, begin: float, failed: Failed, code: int
    ) -> None:
        """Answer the sends of a run, all of which were put, once slaves have them."""
        lasts = np.cumsum(run.sends["messages"]) - 1
        rows = run.drafts.rows[lasts]
        ends: list[int] = (rows["physical_offset"] + rows["size"]).tolist()
        waiting = _Waiting(peer, answers, ends, begin, failed, code)
        if self._store.watermarks.is_confirmed(_result_at(ends[-1])):
            self._answer(waiting)
            return
        self.sends += len(ends)
        peer.wait(len(ends))
        task = self._loop.create_task(self._answer_once_confirmed(waiting))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _answer_once_confirmed(self, waiting: _Waiting) -> None:
        peer, count = waiting.peer, len(waiting.ends)
        try:
            (result,) = await self._store.appends.confirm([_result_at(waiting.ends[-1])])
            if not result.is_ok:
                waiting = waiting._replace(answers=self._with_failures(waiting, result))
            self._answer(waiting)
        except Exception as error:  # noqa: BLE001 (no dispatcher answers these requests)
            _log.error("%d sends failed", count, exc_info=error)
            remark = f"{type(error).__name__}: {error}"
            for answer in _commands(waiting.answers):
                peer.send(response(answer, ResponseCode.SYSTEM_ERROR, remark=remark))
        else:
            _measure(waiting, is_ok=result.is_ok)
        finally:
            self.sends -= count
            peer.wait(-count)

    def _answer(self, waiting: _Waiting) -> None:
        spent = time.perf_counter() - waiting.begin
        self._state.stats.put_times.add(spent, len(waiting.ends))
        waiting.peer.send(waiting.answers)

    def _with_failures(self, waiting: _Waiting, last: PutResult) -> bytes:
        """Return the answers if the last send has a failure: slaves may have the first ones."""
        frames: list[bytes] = []
        is_confirmed = self._store.watermarks.is_confirmed
        for answer, end in zip(_commands(waiting.answers), waiting.ends, strict=True):
            command = answer if is_confirmed(_result_at(end)) else waiting.failed(answer, last)
            frames.append(encode(command))
        return b"".join(frames)


def _measure(waiting: _Waiting, *, is_ok: bool) -> None:
    """Note how long the sends took until their answers."""
    if (latencies := waiting.peer.latencies) is None:
        return
    code, address = waiting.code, waiting.peer.address
    took = time.perf_counter() - waiting.begin
    if is_ok:
        latencies.add(RequestKind(code), took, len(waiting.ends), address)
        return
    for answer in _commands(waiting.answers):
        latencies.add(RequestKind(code, answer.code), took, 1, address)


def waits(properties: str | None) -> bool:
    """Return whether a send with these properties may wait for slaves in a run."""
    return _DOES_NOT not in (properties or "")


def all_wait(run: Run, data: bytes) -> bool:
    """Return whether all sends of a run wait for slaves: none has the property WAIT=false."""
    sends, rows = run.sends, run.drafts.rows
    if run.drafts.texts is not run.drafts.source:  # The properties of single messages are copied.
        last = rows[-1]
        end = int(last["properties_at"] + last["properties_length"])
        stored = run.drafts.texts[:end].tobytes()
    else:  # Those of a batch count, not those of the messages in it.
        firsts = np.cumsum(sends["messages"]) - sends["messages"]
        starts, ends = sends["frame_at"].tolist(), rows["body_at"][firsts].tolist()
        stored = b"".join(data[start:end] for start, end in zip(starts, ends, strict=True))
    return stored.count(_ASKS) == stored.count(_WAITS)


def _result_at(end: int) -> PutResult:
    """Return the result of a put whose last record ends at a physical offset."""
    return PutResult(PutStatus.PUT_OK, end, count=1)


def _commands(frames: bytes) -> Iterator[Command]:
    at = 0
    while at < len(frames):
        yield binary_header.decode(header_at(frames, at))
        at += 4 + int.from_bytes(frames[at : at + 4])
