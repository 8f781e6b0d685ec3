"""Commits of offsets, and locks."""

from __future__ import annotations

from mqlake.protocol.bodies.locks import LockQueues
from mqlake.protocol.bodies.message_queue import MessageQueue
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.headers.offsets import UpdateConsumerOffsetHeader
from tests.broker.running import Running


async def commit(broker: Running, queue_id: int) -> str:
    header = UpdateConsumerOffsetHeader(
        consumer_group="g", topic="T", queue_id=queue_id, commit_offset=0
    )
    return (await broker.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)).remark or ""


async def lock(broker: Running, count: int, start: int = 0) -> str:
    queues = [MessageQueue("T", "a", number) for number in range(start, start + count)]
    body = encode_body(LockQueues("g", "client", mq_set=queues))
    return (await broker.ask(RequestCode.LOCK_BATCH_MQ, None, body)).remark or ""
