"""Which messages of a retry topic a group gets."""

from __future__ import annotations

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.own_properties import POP_GROUP
from mqlake.formats.record import Record


class Retried:
    """Tells the messages of retry topics apart, which other names may share, or outlive.

    A retry topic is removed with its topic or its group if the group's offsets name it. They may
    be lost: a process was killed before it wrote them. So each message is judged by itself.
    """

    def __init__(self, state: BrokerState, runtime: BrokerRuntime) -> None:
        self._runtime, self._incarnations = runtime, state.store.incarnations

    def is_for(self, record: Record, topic: str, group: str) -> bool:
        """Return whether a message of a retry topic is for the pops of a topic by a group.

        Retry topics of two groups may have the same name. Each group has its own offsets there, so
        one passes the other's messages without taking them away.
        """
        is_own = record.properties.get(POP_GROUP, group) == group
        return is_own and not self.is_dead(record, topic, group)

    def is_dead(self, record: Record, topic: str, group: str) -> bool:
        """Return whether the topic or the group was deleted after a message was put to a retry
        topic of both.

        Args:
            topic: the topic from which the message was popped; of its own messages, none is dead.
        """
        if record.topic == topic:
            return False
        at = record.physical_offset
        if at < self._incarnations.group_before(group):
            return True
        is_cleared = self._runtime.settings.clear_retry_topic_when_delete_topic
        return is_cleared and self._incarnations.was_deleted(topic, at)
