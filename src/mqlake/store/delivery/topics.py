"""Topics in which messages wait for their delivery, and whose contents the store trusts.

Upstream: `TopicValidator`, `TimerMessageStore`.
"""

from __future__ import annotations

from mqlake.formats.consume_queue import SCHEDULE_TOPIC

TIMER_TOPIC = "rmq_sys_wheel_timer"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
DISCARDED_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"

WAITING = frozenset((SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, OP_TOPIC))
"""No message is delivered to one of these: only the store itself puts messages there."""
