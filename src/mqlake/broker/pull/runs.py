"""Runs of pulls: a kernel answers standing pulls that arrive together, or one that arrives alone.

The first pull of a connection, group and topic goes the ordinary way. What it leaves is a pattern:
the bytes of its header without its queue, its offsets and its opaque. A frame that has the same
bytes has passed the same checks, as long as nothing that they read has changed. Frames that differ
in anything else are left to `PullRequests`, with the same result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np

from mqlake.broker.pull.patterns import Pattern, decode, pattern_of
from mqlake.broker.pull.run_table import NOT_COPIED, PULL_ROW, STALE, UNKNOWN_QUEUE, UNLIKE
from mqlake.broker.pull.standing import StandingPulls
from mqlake.broker.state.broker_state import BrokerState
from mqlake.dispatch.kernel import is_compiled
from mqlake.errors import FormatError, StoreError
from mqlake.protocol.frames import header_at
from mqlake.protocol.headers.pull import PullHeader
from mqlake.remoting.connection import Peer
from mqlake.remoting.frame_reader import Frames
from mqlake.store.reads.copied_ahead import BUFFER, HIGH, LOW, VERSION

_MOST_PATTERNS: Final = 4
"""Patterns of one connection."""
_MOST_CONNECTIONS: Final = 1024
"""Connections that have patterns."""
_LONGEST_WAIT: Final = 64
"""Frames that are served the ordinary way before a pattern is looked for again."""
_PULLS: Final = 64
_ROOM: Final = 1 << 16
"""Bytes of answers of a run, before the last one."""
_TARGET: Final = _ROOM + BUFFER + 4096

_log = logging.getLogger(__name__)


class _Connection:
    """The patterns of a connection, the one that was used last first.

    Attributes:
        wait: frames that are served the ordinary way before a pattern is looked for again.
        is_tried: whether the frame that comes next was looked at, and no pattern serves it.
    """

    def __init__(self) -> None:
        self.patterns: list[Pattern] = []
        self.wait = self.next_wait = 0
        self.is_tried = False


class _ServedPulls(NamedTuple):
    """Frames that were served.

    Attributes:
        served: how many.
        at: position after them.
        answers: one after the other.
    """

    served: int
    at: int
    answers: bytes


class PullRuns:
    """Answers runs of pulls."""

    def __init__(self, state: BrokerState, standing: StandingPulls) -> None:
        self._state, self._standing, self._reads = state, standing, state.store.reads
        self._offsets = state.store.config.consumer_offsets
        self._connections: dict[Peer, _Connection] = {}
        self._is_usable = is_compiled()
        self._loading: asyncio.Future[Any] | None = None
        self._target, self._pulls = np.empty(_TARGET, np.uint8), np.empty((_PULLS, 5), np.int64)

    def load(self) -> asyncio.Future[Any]:
        """Load the kernel in another thread; until that is done, no run is served."""
        if self._loading is None:
            self._loading = asyncio.get_running_loop().run_in_executor(None, _load)
        return self._loading

    def take(self, peer: Peer, frames: Frames) -> int:
        """Answer the first of these frames, as many as are alike; return how many those were."""
        run = self._served(peer, frames, self._connections.get(peer))
        if run is None:
            return 0
        peer.send(run.answers)
        frames.at = run.at
        return run.served

    def take_one(self, peer: Peer, frames: Frames) -> bytes | None:
        """Answer the only frame that arrived; None if it is to be served otherwise."""
        connection = self._connections.get(peer)
        if connection is None or not connection.patterns:
            return None
        run = self._served(peer, frames, connection)
        if run is None:
            connection.is_tried = True
            return None
        return run.answers

    def _served(
        self, peer: Peer, frames: Frames, connection: _Connection | None
    ) -> _ServedPulls | None:
        if connection is not None and connection.is_tried:
            connection.is_tried = False
            return None
        kernel = self._kernel() if connection is not None else None
        if connection is None or kernel is None:
            self._learn(peer, frames)
            return None
        for number, pattern in enumerate(connection.patterns):
            run, is_known = self._serve(peer, frames, pattern, kernel)
            if is_known:
                if number and run is not None:
                    connection.patterns.insert(0, connection.patterns.pop(number))
                return run
        self._learn(peer, frames)
        return None

    def _kernel(self) -> Callable[..., Any] | None:
        loading = self.load()
        if not loading.done():
            return None
        if (failure := loading.exception()) is not None:
            _log.error(
                "pulls are served one by one, because a kernel cannot be loaded: %s", failure
            )
            self._is_usable = False
            self._connections.clear()
            return None
        return loading.result()

    # Patterns

    def _learn(self, peer: Peer, frames: Frames) -> None:
        """Note the pattern of the first frame if a decision on it stands.

        If no decision stands, the next frames are not examined; their number doubles each time.
        """
        if not self._is_usable:
            return
        connection = self._connections.get(peer)
        if connection is None:
            if len(self._connections) >= _MOST_CONNECTIONS:
                return
            connection = self._connections[peer] = _Connection()
            peer.on_close(self._forget)
        if connection.wait:
            connection.wait -= 1
        elif self._has_learned(connection, frames):
            connection.next_wait = 0
        else:
            connection.wait = connection.next_wait = min(
                _LONGEST_WAIT, 2 * connection.next_wait + 1
            )

    def _has_learned(self, connection: _Connection, frames: Frames) -> bool:
        data = header_at(frames.data, frames.at)
        kind = frames.data[frames.at + 4]
        try:
            request = decode(kind, data)
            header = request.header(PullHeader)
        except FormatError:  # This is reported when the pull is served by itself.
            return False
        decided = self._standing.decision(request, header)
        if decided is None:
            return False
        made = pattern_of(data, request, header, decided)
        if made is None:
            return False
        for pattern in connection.patterns:
            if pattern.kind == kind and pattern.request.is_like(made.request):
                return pattern.add(header.queue_id)
        made.add(header.queue_id)
        del connection.patterns[_MOST_PATTERNS - 1 :]
        connection.patterns.insert(0, made)
        return True

    def _forget(self, peer: Peer) -> None:
        self._connections.pop(peer, None)

    # Runs

    def _serve(
        self, peer: Peer, frames: Frames, pattern: Pattern, kernel: Callable[..., Any]
    ) -> tuple[_ServedPulls | None, bool]:
        """Answer frames of a pattern; return them, and whether the first is of the pattern."""
        begin = perf_counter()
        decided, reads = pattern.decided, self._reads
        request, answer, table = pattern.request, pattern.answer, reads.copies.table
        data, is_ready = np.frombuffer(frames.data, np.uint8), True
        while True:
            served, at, end, why, row, offset = kernel(
                data,
                frames.at,
                pattern.kind,
                request.text,
                request.parts,
                answer.text,
                answer.parts,
                pattern.queues,
                decided.messages,
                decided.bytes,
                table.data,
                table.ends,
                table.copies,
                reads.version,
                self._target,
                _ROOM,
                self._pulls,
            )
            if served or why not in (NOT_COPIED, STALE):
                break
            if why == NOT_COPIED and not (is_ready and self._copy(pattern, row, offset)):
                return None, True
            is_ready = False
            self._look_up(pattern, row)
        if not served:
            return None, why not in (UNLIKE, UNKNOWN_QUEUE)
        pulls: list[list[int]] = self._pulls[:served].tolist()
        if not self._may_be_served(peer, pattern, pulls):
            return None, True
        self._note(pattern, pulls, begin)
        return _ServedPulls(served, at, self._target[:end].tobytes()), True

    def _copy(self, pattern: Pattern, row: int, offset: int) -> bool:
        """Have the messages of a queue copied; return whether they are."""
        decided, queue_id = pattern.decided, pattern.queue_ids[row]
        try:
            copied = self._reads.copied_by(
                pattern.topic, queue_id, offset, decided.messages, decided.tags
            )
        except StoreError:
            return False  # The pull is then served alone, and its answer says what is wrong.
        if copied is None or copied.buffer is None:
            return False
        pattern.copied[row] = copied
        pattern.queues[row] = queue_id, copied.buffer, copied.number
        return True

    def _look_up(self, pattern: Pattern, row: int) -> None:
        """Note the least and the greatest offset of a queue with its copy."""
        queue_id, buffer, _ = pattern.queues[row].tolist()
        low, high = self._reads.queue(pattern.topic, queue_id)
        copies = self._reads.copies.table.copies
        copies[buffer, LOW], copies[buffer, HIGH] = low, high
        copies[buffer, VERSION] = self._reads.version

    def _may_be_served(self, peer: Peer, pattern: Pattern, pulls: list[list[int]]) -> bool:
        """Return whether the checks of these pulls would decide as they did."""
        if not self._standing.stands(pattern.decided, pattern.topic, pattern.group):
            self._connections[peer].patterns.remove(pattern)
            return False
        offsets, group, topic = self._offsets, pattern.group, pattern.topic
        if not offsets.has_resets:
            return True
        queue_ids = {pattern.queue_ids[pull[PULL_ROW]] for pull in pulls}
        return not any(offsets.has_reset(group, topic, queue_id) for queue_id in queue_ids)

    def _note(self, pattern: Pattern, pulls: list[list[int]], begin: float) -> None:
        """Commit the offsets of served pulls, and count them."""
        group, topic, commits = pattern.group, pattern.topic, pattern.commits
        messages = size = 0
        commit = self._standing.commit
        for row, committed, following, count, bytes_ in pulls:
            queue_id = pattern.queue_ids[row]
            commit(group, topic, queue_id, committed if commits else None, following)
            messages, size = messages + count, size + bytes_
            if (copied := pattern.copied[row]) is not None:
                copied.note_read(following)
        stats = self._state.stats
        stats.got(group, topic, messages, size, len(pulls))
        stats.get_times.add(perf_counter() - begin, len(pulls))


def _load() -> Callable[..., Any]:
    # Loaded late and in another thread: a broker must answer before Numba has loaded it.
    from mqlake.broker.pull import warm_up

    return warm_up.load()
