"""Names of topics that have a meaning (docs/formats/config.md).

Upstream: `TopicValidator`, `MixAll`, `TimerMessageStore`.
"""

from __future__ import annotations

from mqlake.formats.consume_queue import SCHEDULE_TOPIC

RETRY_PREFIX = "%RETRY%"
"""Before the name of a group: what it gave back."""
DLQ_PREFIX = "%DLQ%"
"""Before the name of a group: what it has given up."""
OF_GROUPS = (RETRY_PREFIX, DLQ_PREFIX)

AUTO_CREATE_TOPIC = "TBW102"
"""Topics that producers make by sending to them inherit from this one."""
BENCHMARK_TOPIC = "BenchmarkTest"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
CHECKPOINT_TOPIC = "CHECKPOINT_TOPIC"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
UNDELIVERABLE_TOPIC = "rmq_sys_UNDELIVERABLE"
"""Messages that were accepted and can never be put where they belong (mqlake's own)."""

TIMER_TOPIC = "rmq_sys_wheel_timer"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
DISCARDED_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
WAITING = frozenset((SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC, OP_TOPIC))
"""Topics in which messages wait for their delivery: only the store itself puts messages there."""

LIGHT_PREFIX = "%LMQ%"
"""Begins the names of light queues (upstream: `MixAll.LMQ_PREFIX`)."""
