"""LOCK_BATCH_MQ, UNLOCK_BATCH_MQ."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from mqlake.broker.bodies import admin_body
from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.broker.state.queue_locks import LIFETIME
from mqlake.protocol.bodies.locks import LockQueues
from mqlake.protocol.bodies.queue_tables import encode_array, encode_with_table
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.permission import Permission
from mqlake.remoting.connection import Peer
from mqlake.remoting.route import Answer, Route
from mqlake.remoting.shares import owner_of
from mqlake.remoting.slices import Job

_LONGEST_NAME = 1024
"""Maximum characters of a topic, broker, group or client id."""


class LockRequests:
    """Serves consumers that keep the order of their queues."""

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._runtime, self._locks = runtime, state.locks
        runtime.repeating.every(LIFETIME / 1000, self._expire)

    def routes(self) -> Sequence[Route]:
        """Return the handler of each request code."""
        return (
            Route(RequestCode.LOCK_BATCH_MQ, self._lock, Permission.SUBSCRIBE),
            Route(RequestCode.UNLOCK_BATCH_MQ, self._unlock, Permission.SUBSCRIBE),
        )

    def _expire(self) -> None:
        self._runtime.slices.start(self._locks.expire())

    def _lock(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        job = self._lock_all(request, owner_of(peer.address))
        return self._runtime.slices.serve(peer, job, size=len(request.body), is_kept=True)

    def _lock_all(self, request: Command, owner: str) -> Job[Command]:
        body = self._body(request)
        locks, group, client_id = self._locks, body.consumer_group, body.client_id
        most = self._runtime.settings.max_lock_nums
        locked: list[bytes] = []
        for queue in dict.fromkeys(body.mq_set):
            refusal = locks.shares.refusal(owner, len(locks), most, "maxLockNums")
            if refusal is not None and locks.owner(group, queue) is None:
                reason = f"queue {queue} of group {group} is not locked: {refusal}"
                raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
            if locks.lock(group, client_id, queue, owner):
                locked.append(encode_body(queue))
            yield
        return response(request, body=encode_with_table({"lockOKMQSet": encode_array(locked)}))

    def _unlock(self, peer: Peer, request: Command) -> Answer | Coroutine[Any, Any, Answer]:
        job = self._unlock_all(request)
        return self._runtime.slices.serve(peer, job, size=len(request.body), is_kept=True)

    def _unlock_all(self, request: Command) -> Job[Command]:
        body = self._body(request)
        for queue in body.mq_set:
            self._locks.unlock(body.consumer_group, body.client_id, queue)
            yield
        return response(request)

    def _body(self, request: Command) -> LockQueues:
        settings = self._runtime.settings
        body = admin_body(LockQueues, request, settings)
        count, most = len(body.mq_set), settings.max_lock_batch_size
        if count > most:
            reason = f"the request names {count} queues; the maximum is {most} (maxLockBatchSize)"
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        names = (each for queue in body.mq_set for each in (queue.topic, queue.broker_name))
        longest = max(map(len, names), default=0)
        if max(longest, len(body.consumer_group), len(body.client_id)) > _LONGEST_NAME:
            reason = f"a name exceeds {_LONGEST_NAME} characters"
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        return body
