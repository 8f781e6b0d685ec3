"""The queues that a consumer of a group has locked (upstream: `LockBatchRequestBody` …)."""

from __future__ import annotations

import msgspec

from mqlake.protocol.bodies.message_queue import MessageQueue


class LockQueues(msgspec.Struct, rename="camel"):
    """LOCK_BATCH_MQ and UNLOCK_BATCH_MQ: the queues that a consumer wants, or releases."""

    consumer_group: str = ""
    client_id: str = ""
    only_this_broker: bool = False
    mq_set: list[MessageQueue] = []
