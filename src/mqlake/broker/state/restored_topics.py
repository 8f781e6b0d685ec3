"""Topics that have messages, and are not configured.

They were not stored before the last process was killed, the table was lost, or this broker was a
slave then, and had not copied them. They were not deleted: a deleted topic has no messages.
"""

from __future__ import annotations

import logging

from mqlake.broker.settings import BrokerSettings
from mqlake.broker.state.topics import BrokerTopics, queues_for, without_topic
from mqlake.store.live_settings import Current
from mqlake.store.port import LiveReads

_log = logging.getLogger(__name__)


def restore_topics(
    topics: BrokerTopics, reads: LiveReads, settings: Current[BrokerSettings]
) -> None:
    """Create these topics again if this broker is a master, and each time it becomes one."""

    def restore() -> None:
        if not settings.now.is_slave:
            _restore(topics, reads, settings.now.default_topic_queue_nums)

    restore()
    settings.on_change(restore, "broker_role")


def _restore(topics: BrokerTopics, reads: LiveReads, least: int) -> None:
    for name in without_topic(topics, reads.topics()):
        if topics.is_being_deleted(name):
            continue
        count = queues_for(name, reads.queues(name), least)
        _log.warning(
            "topic %s has messages but no configuration: created with %d queues", name, count
        )
        topics.make(name, count)
