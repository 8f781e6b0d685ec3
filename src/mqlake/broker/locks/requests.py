"""LOCK_BATCH_MQ, UNLOCK_BATCH_MQ."""

from __future__ import annotations

from collections.abc import Mapping

from mqlake.broker.locks.queue_locks import LIFETIME
from mqlake.broker.parts import Parts
from mqlake.remoting.bodies.locks import LockedQueues, LockQueues
from mqlake.remoting.body import decode_body, encode_body
from mqlake.remoting.codes import RequestCode
from mqlake.remoting.command import Command, response
from mqlake.remoting.connection import Peer
from mqlake.remoting.server import Handler


class LockRequests:
    """What consumers ask that keep the order of their queues."""

    def __init__(self, parts: Parts) -> None:
        self._locks = parts.locks
        parts.repeating.every(LIFETIME / 1000, self._locks.expire)

    def handlers(self) -> Mapping[int, Handler]:
        """Return what answers each request code."""
        return {RequestCode.LOCK_BATCH_MQ: self._lock, RequestCode.UNLOCK_BATCH_MQ: self._unlock}

    def _lock(self, peer: Peer, request: Command) -> Command:  # noqa: ARG002
        body = decode_body(LockQueues, request.body)
        locked = self._locks.lock(body.consumer_group, body.client_id, body.mq_set)
        return response(request, body=encode_body(LockedQueues(locked)))

    def _unlock(self, peer: Peer, request: Command) -> Command:  # noqa: ARG002
        body = decode_body(LockQueues, request.body)
        self._locks.unlock(body.consumer_group, body.client_id, body.mq_set)
        return response(request)
