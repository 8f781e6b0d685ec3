"""What consumers report about themselves.

Upstream: `ConsumerRunningInfo`, `ProcessQueueInfo`, `ConsumeStatus`,
`ConsumeMessageDirectlyResult`.
"""

from __future__ import annotations

import msgspec


class ProcessQueueInfo(msgspec.Struct, rename="camel"):
    """One queue of a consumer.

    Attributes:
        cached_msg_min_offset, cached_msg_max_offset: queue offsets of unfinished messages.
        transaction_msg_min_offset, transaction_msg_max_offset: if the queue is consumed in order,
            queue offsets of the messages that the listener is processing.
        last_pull_timestamp, last_consume_timestamp, last_lock_timestamp: milliseconds since 1970.
    """

    commit_offset: int
    cached_msg_min_offset: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_count: int = 0
    cached_msg_size: int = msgspec.field(name="cachedMsgSizeInMiB", default=0)
    transaction_msg_min_offset: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_count: int = 0
    locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    dropped: bool = msgspec.field(name="droped", default=False)
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


class ConsumeStatus(msgspec.Struct):
    """How fast one topic is consumed.

    Attributes:
        pull_rt, consume_rt: average milliseconds of a pull, and of processing a message.
        pull_tps, consume_ok_tps, consume_failed_tps: messages per second.
        consume_failed_msgs: messages that failed in the last hour.
    """

    pull_rt: float = msgspec.field(name="pullRT", default=0.0)
    pull_tps: float = msgspec.field(name="pullTPS", default=0.0)
    consume_rt: float = msgspec.field(name="consumeRT", default=0.0)
    consume_ok_tps: float = msgspec.field(name="consumeOKTPS", default=0.0)
    consume_failed_tps: float = msgspec.field(name="consumeFailedTPS", default=0.0)
    consume_failed_msgs: int = msgspec.field(name="consumeFailedMsgs", default=0)


class DirectResult(msgspec.Struct, rename="camel"):
    """The result of a message that a consumer was ordered to consume.

    Attributes:
        consume_result: CR_SUCCESS, CR_LATER or CR_THROW_EXCEPTION.
        spent_time_mills: how long the handler took.
    """

    consume_result: str
    remark: str | None = None
    spent_time_mills: int = 0
    order: bool = False
    auto_commit: bool = True
