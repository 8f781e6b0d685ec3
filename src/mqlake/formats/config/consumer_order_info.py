"""Read `config/consumerOrderInfo.json` (docs/formats/config.md).

RocketMQ 5: `ConsumerOrderInfoManager`.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec


class OrderInfo(msgspec.Struct, frozen=True, rename="camel"):
    """What a group has in hand of one queue that it pops in order; times in milliseconds.

    The first of `offsets` is a queue offset, the others are distances from it. `log_end` is
    mqlake's own, which RocketMQ ignores: the physical offset of the log's end at the pop, 0 if it
    is unknown.
    """

    pop_time: int = 0
    invisible_time: int | None = msgspec.field(default=None, name="i")
    offsets: list[int] = msgspec.field(default_factory=list[int], name="o")
    next_visible_times: dict[int, int] = msgspec.field(default_factory=dict[int, int], name="ot")
    consumed_counts: dict[int, int] = msgspec.field(default_factory=dict[int, int], name="oc")
    last_consume_timestamp: int = msgspec.field(default=0, name="l")
    commit_offset_bit: int = msgspec.field(default=0, name="cm")
    attempt_id: str | None = msgspec.field(default=None, name="a")
    log_end: int = msgspec.field(default=0, name="le")


class ConsumerOrderInfos(msgspec.Struct, frozen=True, rename="camel"):
    """All such queues: `topic@group`, then queue id."""

    file_name: ClassVar[str] = "consumerOrderInfo.json"

    table: dict[str, dict[int, OrderInfo]] = {}
