"""PULL_MESSAGE, LITE_PULL_MESSAGE."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from mqlake.broker.filter.verdicts import UndecidedError, Verdicts
from mqlake.broker.pull.answers import OFFSET_RESET, answer
from mqlake.broker.pull.checks import Allowed, PullChecks
from mqlake.broker.pull.commits import PullCommits
from mqlake.broker.pull.long_polls import LongPolls, Outcome, WaitingPull
from mqlake.broker.pull.reading import Found, PullRead, SharedRead, read, warm_up
from mqlake.broker.pull.which_broker import WhichBroker
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.offsets.past_end import GroupQueue
from mqlake.broker.state.offsets.resets import awaits_reset
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.pull import (
    COMMITS_OFFSET,
    HAS_SUBSCRIPTION,
    MAY_SUSPEND,
    PullHeader,
)
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.slices import Job
from mqlake.store.results import QueueRange, Status

_TOO_MANY = "TOO_MANY_PULLS_WAIT"
_READERS = 2
"""Threads that wait for the disk for consumers that lag far."""

_log = logging.getLogger(__name__)


class _Pull(NamedTuple):
    """A pull that may be served."""

    request: Command
    header: PullHeader
    allowed: Allowed
    wanted: PullRead


class PullRequests:
    """Serves pulls, at once or when messages arrive.

    Attributes:
        commits: commits the offsets that pulls bring.
    """

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._state, self._runtime = state, runtime
        self._reads = state.store.reads
        self._offsets = state.store.config.consumer_offsets
        self._checks = PullChecks(state, runtime)
        self.commits = PullCommits(state, runtime)
        self._which_broker = WhichBroker(state, runtime)
        self._disk = ThreadPoolExecutor(_READERS, "mqlake-read")
        self._shared = SharedRead(self._read, state.store.dispatching)
        self._waiting = LongPolls(self._reads.arrivals, runtime.slices, self._serve_again)
        state.topics.on_move.append(self._topic_moved)
        runtime.live.on_change(self._role_changed, "broker_role", "slave_read_enable")
        state.endings.add(self)
        runtime.on_stop.append(self._stop)

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.PULL_MESSAGE, self._pull, Permission.SUBSCRIBE, PullHeader),
            Route(RequestCode.LITE_PULL_MESSAGE, self._pull, Permission.SUBSCRIBE, PullHeader),
        )

    def topic_ended(self, topic: str) -> Job[None]:
        """Answer the pulls that wait for a topic: it does not exist any more."""
        self._waiting.look_again(topic)
        yield

    def group_ended(self, group: str) -> Job[None]:  # noqa: ARG002
        """Do nothing: pulls of a group that was deleted are refused once their time is up."""
        yield from ()

    def _topic_moved(self, topic: str) -> None:
        """Answer the pulls that wait for a topic: their consumers find another broker."""
        self._runtime.slices.start(self._waiting.end(topic))

    def _role_changed(self) -> None:
        """Answer the pulls that wait as new ones would be."""
        self._runtime.slices.start(self._waiting.look_at_all())

    def _stop(self) -> None:
        self._waiting.stop()
        self._disk.shutdown(wait=False)

    def _pull(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        header = request.header(PullHeader)
        parsed = self._checks.prepare(request, header, peer)
        if parsed is not None:
            return self._pull_parsed(peer, request, header, parsed)
        return self._pull_now(peer, request, header)

    async def _pull_parsed(
        self, peer: Peer, request: Command, header: PullHeader, parsed: Coroutine[Any, Any, None]
    ) -> Answer:
        await parsed
        answered = self._pull_now(peer, request, header)
        return answered if isinstance(answered, Command | bytes | None) else await answered

    def _pull_now(
        self, peer: Peer, request: Command, header: PullHeader
    ) -> Answer | Coroutine[Any, Any, Answer]:
        pull = self._pull_from(peer, request, header, header.queue_offset)
        if header.sys_flag & COMMITS_OFFSET:
            self.commits.commit(header, header.queue_id, header.commit_offset)
        reset = self._take_reset(pull)
        if reset is not None:
            return reset
        job = warm_up(self._reads, pull.wanted, self._runtime.settings)
        return self._serve_warm(peer, pull) if job is None else self._serve_cold(peer, pull, job)

    def is_costly(self, header: PullHeader) -> bool:
        """Return whether checking a pull takes long, because its expression must be parsed."""
        return self._checks.is_costly(header)

    def check(self, peer: Peer, request: Command, header: PullHeader) -> tuple[Allowed, PullRead]:
        """Return what a pull may read.

        Raises:
            RemotingError: the response to a pull that may not be served.
        """
        allowed = self._checks.check(request, header, peer)
        settings = self._runtime.settings
        most = min(header.max_msg_nums, settings.max_transfer_count_on_message_in_memory)
        most_bytes = settings.max_transfer_bytes_on_message_in_memory
        if header.max_msg_bytes and header.max_msg_bytes > 0:
            most_bytes = min(most_bytes, header.max_msg_bytes)
        topic, queue_id, offset = header.topic, header.queue_id, header.queue_offset
        wanted = PullRead(topic, queue_id, offset, max(most, 1), most_bytes, allowed.choice)
        return allowed, wanted

    def _pull_from(self, peer: Peer, request: Command, header: PullHeader, offset: int) -> _Pull:
        """Return a pull that may be served, from an offset on.

        Raises:
            RemotingError: the response to a pull that may not be served.
        """
        allowed, wanted = self.check(peer, request, header)
        return _Pull(request, header, allowed, wanted._replace(offset=offset))

    def _read(self, wanted: PullRead, verdicts: Verdicts | None = None) -> Found:
        begin, settings = time.perf_counter(), self._runtime.settings
        found = read(self._reads, wanted, settings, verdicts)
        if wanted.offset > found.max_offset and self._state.store.dispatching.catch_up():
            # The offset may be that of a message which was acknowledged just now.
            found = read(self._reads, wanted, settings, verdicts)
        self._state.stats.get_times.add(time.perf_counter() - begin)
        return found

    def _take_reset(self, pull: _Pull) -> Command | bytes | None:
        """Return the response to a group whose offset was reset, or None if it was not."""
        header = pull.header
        group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
        if not awaits_reset(self._state, self._runtime, group, topic, queue_id):
            return None
        # The reset is taken after the read: if the disk refuses that, the next pull receives it.
        low, high = self._reads.queue(topic, queue_id)
        is_restart = self._offsets.begins_anew(group, topic, queue_id)
        offset = self._offsets.take_reset(group, topic, queue_id)
        if offset is None or (is_restart and pull.wanted.offset == offset):
            return None
        found = Found(Status.OFFSET_OVERFLOW_BADLY, 0, [], offset, low, high)
        code = ResponseCode.PULL_OFFSET_MOVED
        return answer(
            pull.request, code, found, pull.allowed.topic, pull.allowed.group, OFFSET_RESET
        )

    async def _serve_cold(self, peer: Peer, pull: _Pull, job: Callable[[], object]) -> Answer:
        """Serve a pull after another thread has waited for the disk. Others do not wait."""
        await asyncio.get_running_loop().run_in_executor(self._disk, job)
        answered = self._serve_warm(peer, pull)
        return answered if isinstance(answered, Command | bytes | None) else await answered

    def _serve_warm(self, peer: Peer, pull: _Pull) -> Answer | Coroutine[Any, Any, Answer]:
        if pull.wanted.choice.condition is None:
            return self._serve(peer, pull)
        job, size = self._serve_by_condition(peer, pull), len(pull.request.body)
        return self._runtime.slices.serve(peer, job, size=size)

    def _serve_by_condition(self, peer: Peer, pull: _Pull) -> Job[Answer]:
        """Serve a pull whose condition may take long to evaluate."""
        verdicts = Verdicts(pull.wanted.choice)
        while True:
            try:
                return self._serve(peer, pull, verdicts)
            except UndecidedError:
                yield
            verdicts.resume()

    def _serve(self, peer: Peer, pull: _Pull, verdicts: Verdicts | None = None) -> Answer:
        """Answer a pull, or let it wait."""
        found = self._read(pull.wanted, verdicts)
        header: PullHeader = pull.header
        code, found = self._judged(pull, found, header.queue_offset)
        may_wait = header.sys_flag & MAY_SUSPEND
        if code == ResponseCode.PULL_NOT_FOUND and self._which_broker.is_redirected(found):
            # Messages arrive at the master first, so the consumer waits there.
            code, may_wait = ResponseCode.PULL_RETRY_IMMEDIATELY, 0
        if code == ResponseCode.PULL_NOT_FOUND and may_wait:
            self._check_room(peer)
            peer.drop_body(pull.request)
            deadline = self._waiting.deadline(self._patience(header))
            if not header.sys_flag & HAS_SUBSCRIPTION:
                header.subscription = header.expression_type = None
            peer.suspend(pull.request)
            request, seen = pull.request.bare(), header.queue_offset
            self._waiting.wait(WaitingPull(peer, request, header, seen, deadline))
            return None
        return self._answer(pull, code, found)

    def _judged(self, pull: _Pull, found: Found, offset: int) -> tuple[int, Found]:
        """Return the response code for what was found from an offset on, and what to answer."""
        code, found = self._which_broker.judged(found, offset)
        is_past_end = found.status is Status.OFFSET_OVERFLOW_BADLY
        if code == ResponseCode.PULL_OFFSET_MOVED and is_past_end:
            at = GroupQueue(pull.header.consumer_group, pull.wanted.topic, pull.wanted.queue_id)
            queue = QueueRange(found.min_offset, found.max_offset)
            next_offset = self._state.past_end.next_offset(at, offset, queue)
            found = found._replace(next_offset=next_offset)
        return code, found

    def _check_room(self, peer: Peer) -> None:
        """Refuse a pull, or older pulls of the largest connection, if too many pulls wait."""
        settings, waiting, busy = self._runtime.settings, self._waiting, self._state.busy
        own, most = waiting.of(peer), settings.pull_polling_size
        if own >= most:
            why = f"{most} pulls of this connection wait already (pullPollingSize)"
            raise busy.refusal(_TOO_MANY, why)
        most = settings.max_pull_polling_size
        if len(waiting) < most:
            return
        refusal = busy.refusal(_TOO_MANY, f"{most} pulls wait already (maxPullPollingSize)")
        pulls = waiting.make_room(peer)
        if not pulls:
            raise refusal
        for pull in pulls:
            refused = response(pull.request, refusal.code, remark=refusal.remark)
            pull.peer.answer(pull.request, refused)

    def _patience(self, header: PullHeader) -> int:
        settings = self._runtime.settings
        if settings.long_polling_enable:
            return header.suspend_timeout_millis
        return settings.short_polling_time_mills

    def _answer(self, pull: _Pull, code: int, found: Found) -> Command | bytes:
        header, allowed = pull.header, pull.allowed
        group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
        room = self._state.offset_room
        if room.has_room(group) or self._offsets.has_pull(group, topic, queue_id):
            self._offsets.commit_pull(group, topic, queue_id, found.next_offset)
        size = sum(map(len, found.pieces))
        self._state.stats.got(group, topic, found.messages, size)
        status, suggested = found.status.value, self._which_broker.suggested(allowed.group, found)
        return answer(pull.request, code, found, allowed.topic, allowed.group, status, suggested)

    # Pulls that have waited

    def _serve_again(self, waiting: WaitingPull, is_over: bool) -> Outcome:
        """Answer a pull, or let it continue to wait.

        Args:
            is_over: whether it has waited long enough.
        """
        request = waiting.request
        try:
            answered = self._pull_again(waiting, is_over)
        except RemotingError as error:
            answered = response(request, error.code, remark=error.remark)
        except Exception as error:  # noqa: BLE001 — the others that wait are served all the same
            _log.exception("%s: request %d failed", waiting.peer.address, request.code)
            remark = f"{type(error).__name__}: {error}"
            answered = response(request, ResponseCode.SYSTEM_ERROR, remark=remark)
        if isinstance(answered, Outcome):
            return answered
        waiting.peer.answer(request, answered)
        return Outcome.ANSWERED

    def _pull_again(self, waiting: WaitingPull, is_over: bool) -> Command | bytes | Outcome:
        self._state.refusals.check_code(waiting.request.code)
        pull = self._pull_from(waiting.peer, waiting.request, waiting.header, waiting.seen)
        reset = self._take_reset(pull)
        if reset is not None:
            return reset
        try:
            found = self._shared.read(pull.wanted)
        except UndecidedError:
            # The condition takes long for this message: the consumer's next pull has time for it.
            low, high = self._reads.queue(pull.wanted.topic, pull.wanted.queue_id)
            found = Found(Status.NO_MATCHED_MESSAGE, 0, [], waiting.seen, low, high)
            return self._answer(pull, ResponseCode.PULL_RETRY_IMMEDIATELY, found)
        code, found = self._judged(pull, found, waiting.seen)
        if code not in (ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY):
            return self._answer(pull, code, found)
        if code == ResponseCode.PULL_NOT_FOUND and self._which_broker.is_redirected(found):
            code, is_over = ResponseCode.PULL_RETRY_IMMEDIATELY, True
        # The new messages do not match: they need not be examined again.
        waiting.seen = found.next_offset
        if not is_over:
            return Outcome.IS_BEHIND if waiting.seen < found.max_offset else Outcome.WAITS
        if waiting.seen > waiting.header.queue_offset:
            code = ResponseCode.PULL_RETRY_IMMEDIATELY
            found = found._replace(status=Status.NO_MATCHED_MESSAGE)
        return self._answer(pull, code, found)
