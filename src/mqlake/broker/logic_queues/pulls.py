"""Pulls from logic queues: the stretch that they read, and the answer in logic offsets.

Upstream: `PullMessageProcessor.rewriteRequestForStaticTopic`, `rewriteResponseForStaticTopic`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, NamedTuple

import msgspec

from mqlake.broker.logic_queues.rewriting import serve_rewritten
from mqlake.broker.pull.answers import OFFSET_RESET
from mqlake.broker.pull.checks import PullChecks
from mqlake.broker.pull.commits import PullCommits
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.static_topics import LogicQueue
from mqlake.client.cluster import MASTER
from mqlake.formats.config.topic_queue_mapping import LogicQueueMappingItem
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.headers.pull import (
    COMMITS_OFFSET,
    MAY_SUSPEND,
    PullAnswerHeader,
    PullHeader,
)
from mqlake.protocol.logic_queues.mapping import (
    first_stretch,
    is_ended,
    last_known_offset,
    logical_offset,
    physical_offset,
    stretch_after,
)
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Handler

_PAUSE = 1.0
"""Seconds before a forwarded pull is answered if the other broker found no messages."""
_NONE = frozenset((ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY))
_PULLED = _NONE | {ResponseCode.SUCCESS, ResponseCode.PULL_OFFSET_MOVED}

Place = tuple[LogicQueueMappingItem, int]
"""A stretch, and an offset in its broker's queue."""


class PullOffsets(NamedTuple):
    """The answer to a pull without messages: its code, and offsets of the queue.

    Attributes:
        code: a `ResponseCode`.
        next, min, max: as in `PullAnswerHeader`.
    """

    code: int
    next: int
    min: int
    max: int


class StretchPull(NamedTuple):
    """A pull from a logic queue.

    Attributes:
        queue: the logic queue.
        item: the stretch that is read.
        logical: the requested offset.
        header: the pull from the queue of the stretch's broker; it commits the offset of the
            logic queue.
    """

    queue: LogicQueue
    item: LogicQueueMappingItem
    logical: int
    header: PullHeader

    @property
    def delta(self) -> int:
        """Return what clients add to the queue offsets of messages."""
        return self.item.logic_offset - self.item.start_offset

    @property
    def has_next(self) -> bool:
        """Return whether reading continues in another stretch after this one."""
        return stretch_after(self.queue.items, self.item) is not None

    def own(self) -> tuple[PullHeader, Place | None]:
        """Return the pull for this broker's queue, which waits only in the last stretch.

        Also return the place of the offset to commit, if it is in another queue.
        """
        flags, commit, elsewhere = self.header.sys_flag, self.header.commit_offset, None
        if self.has_next:
            flags &= ~MAY_SUSPEND
        if flags & COMMITS_OFFSET:
            item, commit = self.queue.place_of(commit)
            if (item.bname, item.queue_id) != (self.item.bname, self.item.queue_id):
                flags, elsewhere = flags & ~COMMITS_OFFSET, (item, commit)
        header = msgspec.structs.replace(
            self.header, sys_flag=flags, commit_offset=commit, lo=False
        )
        return header, elsewhere

    def forwarded(self) -> PullHeader:
        """Return the pull for another broker, which answers at once and commits nothing."""
        flags = self.header.sys_flag & ~(MAY_SUSPEND | COMMITS_OFFSET)
        return msgspec.structs.replace(self.header, sys_flag=flags, lo=False, bname=self.item.bname)

    def answered(self, found: PullOffsets, requested: int) -> PullOffsets:
        """Return the answer in offsets of the logic queue.

        Args:
            found: the answer of the broker's queue.
            requested: offset in the broker's queue.
        """
        item = self.item
        if found.code != ResponseCode.SUCCESS:
            found, item = self._moved(found, requested)
        after = found.next
        if is_ended(item) and requested < item.end_offset:
            after = min(after, item.end_offset)
        end = max(logical_offset(item, found.max), last_known_offset(self.queue.items))
        return PullOffsets(
            found.code,
            logical_offset(item, after),
            logical_offset(item, found.min),
            end,
        )

    def _moved(
        self, found: PullOffsets, requested: int
    ) -> tuple[PullOffsets, LogicQueueMappingItem]:
        """Return where reading continues if there are no messages, and in which stretch."""
        item = self.item
        if requested < found.min:
            first = first_stretch(self.queue.items)
            is_first = first is not None and first.gen == item.gen
            # The messages before are removed: of the whole queue, or only of this stretch.
            code = (
                ResponseCode.PULL_OFFSET_MOVED if is_first else ResponseCode.PULL_RETRY_IMMEDIATELY
            )
            return found._replace(code=code, next=found.min), item
        if requested < found.max:
            return found, item
        after = stretch_after(self.queue.items, item)
        if after is not None:
            start = after.start_offset
            return PullOffsets(ResponseCode.PULL_RETRY_IMMEDIATELY, start, start, start), after
        if found.code == ResponseCode.PULL_OFFSET_MOVED:
            found = found._replace(next=found.max)
        return found, item


class LogicPulls:
    """Serves pulls from logic queues."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._static_topics, self._forwarder = state.static_topics, state.forwarder
        self._checks = PullChecks(state, runtime)
        self._commit = PullCommits(state, runtime).commit

    def serve(
        self, peer: Peer, request: Command, queue: LogicQueue, serve: Handler
    ) -> Answer | Coroutine[Any, Any, Answer]:
        """Pull from the stretch with the requested offset, here or from its broker."""
        pull, asked = pull_from(queue, request.header(PullHeader)), request.bare()
        if pull.item.bname != self._static_topics.broker_name:
            return self._forward(peer, request, pull)

        def restore(answer: Command) -> Command:
            if answer.code not in _PULLED:
                return answer
            if answer.code in _NONE and not self._static_topics.is_current(queue):
                return _ask_again(asked, pull.logical)
            return _restored(asked, answer, pull)

        own, elsewhere = pull.own()
        answer = serve_rewritten(peer, request, own, restore, serve)
        # A pull that is answered later is not checked yet. Every few seconds, the client commits
        # separately, too, also what is on another broker.
        if elsewhere is not None and not isinstance(answer, Coroutine):
            item, offset = elsewhere
            if item.bname == self._static_topics.broker_name:
                self._commit(own, item.queue_id, offset)
        return answer

    async def _forward(self, peer: Peer, request: Command, pull: StretchPull) -> Command:
        """Answer a pull with the response of its stretch's broker."""
        # Checked as a pull from this broker's queue; the other broker checks it again.
        own = msgspec.structs.replace(pull.header, queue_id=pull.queue.leader.queue_id)
        prepared = self._checks.prepare(request, own, peer)
        if prepared is not None:
            await prepared
        self._checks.check(request, own, peer)
        broker, code = pull.item.bname, RequestCode.PULL_MESSAGE
        answered = await self._forwarder.ask(broker, code, pull.forwarded())
        if answered.code not in _PULLED:
            reason = f"broker {broker}: {answered.remark or 'no reason'}"
            raise RemotingError(answered.code, reason)
        known = answered.header(PullAnswerHeader)
        found = pull.answered(_offsets(answered.code, known), pull.header.queue_offset)
        if found.code == ResponseCode.PULL_NOT_FOUND:
            # The next stretch has no first offset yet: repeating the pull at once would not help.
            await asyncio.sleep(min(_PAUSE, max(0, pull.header.suspend_timeout_millis) / 1000))
        known.suggest_which_broker_id = MASTER
        return _answer(request, answered, known, pull, found)


def _restored(asked: Command, answer: Command, pull: StretchPull) -> Command:
    """Return the answer to a pull from a logic queue, for that to a pull from its stretch."""
    known, requested = answer.header(PullAnswerHeader), pull.header.queue_offset
    offsets = _offsets(answer.code, known)
    if answer.remark == OFFSET_RESET:
        bounds = pull.answered(offsets._replace(code=ResponseCode.SUCCESS), offsets.next)
        found = bounds._replace(code=answer.code, next=logical_offset(pull.item, offsets.next))
    else:
        if answer.code in _NONE and offsets.min <= offsets.next:
            # A pull that waited may have read on while messages were removed.
            requested = max(requested, offsets.min)
        found = pull.answered(offsets, requested)
    return _answer(asked, answer, known, pull, found)


def _answer(
    asked: Command, answer: Command, known: PullAnswerHeader, pull: StretchPull, found: PullOffsets
) -> Command:
    known.next_begin_offset, known.min_offset, known.max_offset = found[1:]
    known.offset_delta = pull.delta
    return response(asked, found.code, known, answer.body, answer.remark)


def _ask_again(asked: Command, logical: int) -> Command:
    """Make a consumer pull the same offset again: another broker may have it by now."""
    header = PullAnswerHeader(next_begin_offset=logical, min_offset=0, max_offset=logical)
    return response(asked, ResponseCode.PULL_RETRY_IMMEDIATELY, header)


def _offsets(code: int, known: PullAnswerHeader) -> PullOffsets:
    return PullOffsets(code, known.next_begin_offset, known.min_offset, known.max_offset)


def pull_from(queue: LogicQueue, header: PullHeader) -> StretchPull:
    """Return the pull from the stretch with the requested offset.

    Raises:
        RemotingError: no offset of the queue is decided yet.
    """
    logical = header.queue_offset
    item = queue.stretch_at(logical)
    at, most = physical_offset(item, logical), header.max_msg_nums
    if is_ended(item) and at < item.end_offset:
        most = min(most, item.end_offset - at)
    physical = msgspec.structs.replace(
        header, queue_id=item.queue_id, queue_offset=at, max_msg_nums=most
    )
    return StretchPull(queue, item, logical, physical)
