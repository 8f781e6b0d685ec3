"""PULL_MESSAGE, LITE_PULL_MESSAGE."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from mqlake.broker.parts import Parts
from mqlake.broker.pull.answers import OFFSET_RESET, answer, code_of
from mqlake.broker.pull.checks import Allowed, PullChecks
from mqlake.broker.pull.long_polls import LongPolls, WaitingPull
from mqlake.broker.pull.reading import Found, Wanted, read
from mqlake.remoting.codes import RequestCode, ResponseCode
from mqlake.remoting.command import Command, response
from mqlake.remoting.connection import Peer
from mqlake.remoting.errors import RemotingError
from mqlake.remoting.headers.pull import COMMITS_OFFSET, MAY_SUSPEND, PullHeader
from mqlake.remoting.server import Handler
from mqlake.store.results import Status

_log = logging.getLogger(__name__)


class PullRequests:
    """Serves pulls, at once or when there is something to serve."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._reads = parts.store.core.reads
        self._offsets = parts.store.core.config.consumer_offsets
        self._checks = PullChecks(parts)
        self._waiting = LongPolls(self._reads.arrivals, self._serve_again)
        parts.on_stop.append(self._waiting.stop)

    def handlers(self) -> Mapping[int, Handler]:
        """Return what answers each request code."""
        return {RequestCode.PULL_MESSAGE: self._pull, RequestCode.LITE_PULL_MESSAGE: self._pull}

    def _pull(self, peer: Peer, request: Command) -> Command | None:
        header = request.header(PullHeader)
        allowed = self._checks.check(request, header, peer.address)
        if header.sys_flag & COMMITS_OFFSET:
            self._offsets.commit(
                header.consumer_group, header.topic, header.queue_id, header.commit_offset
            )
        reset = self._take_reset(request, header, allowed)
        if reset is not None:
            return reset
        found = self._read(header, header.queue_offset, allowed)
        code = code_of(found, header.queue_offset)
        if code == ResponseCode.PULL_NOT_FOUND and header.sys_flag & MAY_SUSPEND:
            deadline = self._waiting.deadline(self._patience(header))
            self._waiting.wait(WaitingPull(peer, request, header, header.queue_offset, deadline))
            return None
        return self._answer(request, header, code, found, allowed)

    def _patience(self, header: PullHeader) -> int:
        settings = self._parts.settings
        if settings.long_polling_enable:
            return header.suspend_timeout_millis
        return settings.short_polling_time_mills

    def _take_reset(self, request: Command, header: PullHeader, allowed: Allowed) -> Command | None:
        """Return the answer to a group whose offset was set from outside, None where it was not."""
        if not self._parts.settings.use_server_side_reset_offset:
            return None
        group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
        offset = self._offsets.take_reset(group, topic, queue_id)
        if offset is None:
            return None
        found = Found(Status.OFFSET_OVERFLOW_BADLY, [], offset, *self._reads.queue(topic, queue_id))
        code = ResponseCode.PULL_OFFSET_MOVED
        return answer(request, code, found, allowed.topic, allowed.group, OFFSET_RESET)

    def _read(self, header: PullHeader, offset: int, allowed: Allowed) -> Found:
        settings = self._parts.settings
        most = min(header.max_msg_nums, settings.max_transfer_count_on_message_in_memory)
        most_bytes = settings.max_transfer_bytes_on_message_in_memory
        if header.max_msg_bytes and header.max_msg_bytes > 0:
            most_bytes = min(most_bytes, header.max_msg_bytes)
        wanted = Wanted(
            header.topic, header.queue_id, offset, max(most, 1), most_bytes, allowed.choice
        )
        return read(self._reads, wanted, settings)

    def _answer(
        self, request: Command, header: PullHeader, code: int, found: Found, allowed: Allowed
    ) -> Command:
        group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
        self._offsets.commit_pull(group, topic, queue_id, found.next_offset)
        self._parts.stats.got(group, topic, len(found.messages))
        return answer(request, code, found, allowed.topic, allowed.group, found.status.value)

    # Pulls that have waited

    def _serve_again(self, pull: WaitingPull, is_over: bool) -> None:
        """Answer a pull, or let it wait on.

        Args:
            is_over: it has waited long enough.
        """
        request = pull.request
        try:
            answered = self._pull_again(pull, is_over)
        except RemotingError as error:
            answered = response(request, error.code, remark=error.remark)
        except Exception as error:  # noqa: BLE001 — the others that wait are served all the same
            _log.exception("%s: request %d failed", pull.peer.address, request.code)
            remark = f"{type(error).__name__}: {error}"
            answered = response(request, ResponseCode.SYSTEM_ERROR, remark=remark)
        if answered is not None:
            pull.peer.answer(request, answered)

    def _pull_again(self, pull: WaitingPull, is_over: bool) -> Command | None:
        request, header = pull.request, pull.header
        allowed = self._checks.check(request, header, pull.peer.address)
        reset = self._take_reset(request, header, allowed)
        if reset is not None:
            return reset
        found = self._read(header, pull.seen, allowed)
        code = code_of(found, pull.seen)
        if code not in (ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY):
            return self._answer(request, header, code, found, allowed)
        # What has come is not what is wanted: it need not be looked at again.
        pull.seen = found.next_offset
        if not is_over:
            self._waiting.wait(pull, is_behind=pull.seen < found.max_offset)
            return None
        if pull.seen > header.queue_offset:
            code, found = (
                ResponseCode.PULL_RETRY_IMMEDIATELY,
                found._replace(status=Status.NO_MATCHED_MESSAGE),
            )
        return self._answer(request, header, code, found, allowed)
