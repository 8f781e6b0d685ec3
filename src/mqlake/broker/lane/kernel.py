"""Call the lane's kernel, with its buffers.

`python -m mqlake.broker.lane.kernel` fills the cache of kernels once, at set-up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from mqlake.broker.lane import layout
from mqlake.broker.lane.answers import LaneAnswers, lane_answers
from mqlake.broker.lane.compiled.topics import enter
from mqlake.broker.lane.compiled.turn import serve
from mqlake.broker.lane.topics import LaneTopics
from mqlake.broker.send.run_frames import Most
from mqlake.broker.send.runs import UsualSends
from mqlake.dispatch.batch import Bytes
from mqlake.dispatch.compiled.put_sent import NUMBERS
from mqlake.kernels import jit
from mqlake.kernels.entry_point import entry_point_for

KERNELS: Final = (serve, enter)
"""Compiled, or loaded from the cache, before the first turn."""

_PROPERTIES: Final = 1 << 16
"""Bytes of the stored properties of one message."""
_SCRATCH: Final = 64 << 10
_FIRST_SOCKETS: Final = 1024
_NOTHING: Bytes = np.frombuffer(b"", np.uint8)
_NO_LOG: Bytes = np.zeros(0, np.uint8)
NO_ANSWERS: Final = LaneAnswers(
    _NOTHING, (0, 0, 0), (_NOTHING, _NOTHING, _NOTHING), _NOTHING, np.zeros(7, np.int64)
)
"""For a kernel that serves nothing yet."""


class LaneKernel:
    """The kernel, and what it keeps between two calls.

    Attributes:
        state: the numbers of `layout`, i8[STATES].
        numbers: the same, for quick access to one of them.
        data, answers: what was received from one connection, and what answers it.
        is_usable: whether the answers have the form that the kernel writes.
        times: i8[2, n]: messages by how long they took, and how many nanoseconds that was.
        first_times: the same, for quick access to one of them.
    """

    def __init__(self, most: Most, own: bytes, answers: LaneAnswers, topics: LaneTopics) -> None:
        self.is_usable = True
        self.state = np.zeros(layout.STATES, np.int64)
        self.numbers = self.state.data
        self._time = np.zeros(2, np.int64)
        self._events = np.zeros(layout.EVENT_WORDS * layout.MOST_EVENTS, np.int32)
        self.data: Bytes = np.zeros(layout.DATA_SIZE, np.uint8)
        self.answers: Bytes = np.zeros(layout.ANSWERS_SIZE, np.uint8)
        self.times = np.zeros((2, len(layout.BINS) + 1), np.int64)
        self.first_times = self.times.data
        self._properties: Bytes = np.zeros(_PROPERTIES, np.uint8)
        self._message = np.zeros(NUMBERS, np.int64)
        self._scratch: Bytes = np.zeros(_SCRATCH, np.uint8)
        self._route: Bytes = np.zeros(layout.ROUTE_SIZE, np.uint8)
        self._readers: Bytes = np.zeros(_FIRST_SOCKETS, np.uint8)
        self._hosts: Bytes = np.zeros(_FIRST_SOCKETS * 8, np.uint8)
        self._active = np.zeros(_FIRST_SOCKETS, np.int64)
        self._served = np.zeros(_FIRST_SOCKETS, np.int64)
        for place, array in (
            (layout.EVENTS_AT, self._events),
            (layout.DATA_AT, self.data),
            (layout.ANSWERS_AT, self.answers),
            (layout.TIME_AT, self._time),
        ):
            self.state[place] = array.ctypes.data
        self._serve: Callable[..., int]
        self._use(most, own, answers, topics)

    def enter(self, socket: int, host: bytes) -> None:
        """Read a connection from now on."""
        if socket >= len(self._readers):
            self._grow(socket)
        self._hosts[8 * socket : 8 * socket + 8] = np.frombuffer(host, np.uint8)
        self._readers[socket], self._active[socket], self._served[socket] = 1, 0, 0

    def _grow(self, socket: int) -> None:
        """Make room for connections up to this one, and more."""
        more = 2 * socket - len(self._readers)
        self._readers = np.append(self._readers, np.zeros(more, np.uint8))
        self._hosts = np.append(self._hosts, np.zeros(8 * more, np.uint8))
        self._active = np.append(self._active, np.zeros(more, np.int64))
        self._served = np.append(self._served, np.zeros(more, np.int64))
        self._bind()

    def leave(self, socket: int) -> None:
        """Read a connection no more."""
        self._readers[socket] = 0

    def take_served(self, socket: int) -> int:
        """Return how many sends of a connection were served since the last call."""
        found, self._served[socket] = int(self._served[socket]), 0
        return found

    def last_read(self, socket: int) -> float:
        """Return when a connection was read last, in seconds as `time.monotonic` has them."""
        return float(self._active[socket]) / 1e9

    def change(self, usual: UsualSends, topics: LaneTopics) -> None:
        """Serve sends by other settings from now on."""
        answers = lane_answers(usual.answers)
        self.is_usable = answers is not None
        if answers is not None:
            self._use(usual.most, usual.own, answers, topics)

    def _use(self, most: Most, own: bytes, answers: LaneAnswers, topics: LaneTopics) -> None:
        self._own, self._most = np.frombuffer(own, np.uint8), np.array(most, np.int64)
        self._texts, self._topics = answers, topics
        self._bind()

    def _bind(self) -> None:
        """Prepare the arguments of the kernel."""
        texts, topics = self._texts, self._topics
        self._arguments = (
            self.state,
            self._time,
            self._events,
            self._readers,
            self._active,
            self._served,
            self.data,
            self._own,
            self._most,
            self._properties,
            self._message,
            self._scratch,
            self._route,
            self._hosts,
            self.answers,
            texts.start,
            texts.places,
            *texts.names,
            texts.text,
            texts.parts,
            topics.slots,
            topics.names,
            topics.sizes,
            topics.firsts,
            topics.counts,
            topics.routes,
            topics.seed,
            topics.offsets,
            topics.touched,
            topics.marks,
            self.times,
        )
        self._serve = entry_point_for(serve, _NO_LOG, *self._arguments)

    def serve(self, log: Bytes) -> int:
        """Serve sends; return why that ends: see `layout`."""
        return self._serve(log, *self._arguments)

    def rest(self) -> bytes:
        """Return what was received and not served."""
        return self.data[self.numbers[layout.POSITION] : self.numbers[layout.RECEIVED]].tobytes()

    def take(self) -> bytes:
        """Return what was received and not served; it is the caller's now."""
        found = self.rest()
        self.numbers[layout.POSITION] = self.numbers[layout.RECEIVED] = 0
        return found

    def unsent(self) -> bytes:
        """Return the answers that were not accepted."""
        return self.answers[
            self.numbers[layout.UNSENT_AT] : self.numbers[layout.UNSENT_END]
        ].tobytes()


def load_kernel(usual: UsualSends, topics: LaneTopics) -> LaneKernel:
    """Load the kernel, and make one."""
    load()
    kernel = LaneKernel(usual.most, usual.own, NO_ANSWERS, topics)
    kernel.change(usual, topics)
    return kernel


def load() -> None:
    """Load the kernels from the cache; if they are not there, another process compiles them."""
    jit.compile_elsewhere(KERNELS, __spec__.name)
    call_each()


def call_each() -> None:
    """Call each kernel once, without a connection; compile those that are not in the cache."""
    topics = LaneTopics()
    topics.add("T", 1, b"")
    # Its time is over before it asks for connections.
    LaneKernel(Most(0, 0, 0), b"", NO_ANSWERS, topics).serve(np.zeros(1, np.uint8))


if __name__ == "__main__":
    call_each()
