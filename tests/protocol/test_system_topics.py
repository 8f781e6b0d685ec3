"""Which topics are RocketMQ's own."""

from __future__ import annotations

import re

import pytest

from mqlake.protocol.naming import (
    SYSTEM_TOPIC_PATTERN,
    SYSTEM_TOPICS,
    is_system_topic,
    own_topics,
)
from mqlake.query.reading.losses import is_internal, no_topic
from mqlake.query.store.offsets import NO_SYSTEM_TOPICS

SYSTEM = [
    *sorted(SYSTEM_TOPICS),
    "rmq_sys_REVIVE_LOG_c",
    "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC",
    "Rmq_Sys_",
    "c_REPLY_TOPIC",
    "a\nb_REPLY_TOPIC",
]
OTHERS = [
    "orders",
    "TBW102x",
    "xTBW102",
    "TBW102\n",
    "c_REPLY_TOPIC_2",
    "c_reply_topic",
    "_rmq_sys_",
    "%RETRY%g",
    "",
]


@pytest.mark.parametrize(
    ("topic", "expected"), [(x, True) for x in SYSTEM] + [(x, False) for x in OTHERS]
)
def test_there_is_one_rule(topic: str, expected: bool) -> None:
    assert is_system_topic(topic) is expected
    assert NO_SYSTEM_TOPICS.holds(topic) is not expected
    assert is_internal(topic) is (expected or topic.startswith("%RETRY%"))
    assert (re.fullmatch(f"(?s){SYSTEM_TOPIC_PATTERN}", topic) is not None) is expected


def test_topics_with_the_names_of_clusters_and_brokers() -> None:
    topics = ["c", "c_REPLY_TOPIC", "b", "rmq_sys_SYNC_BROKER_MEMBER_b", "orders", "d"]
    assert own_topics(topics) == {"b", "c"}
    assert no_topic("x" * 30, topics).endswith("there are d, orders")
