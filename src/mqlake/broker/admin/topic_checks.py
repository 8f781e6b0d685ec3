"""Checks of administrators' changes to topics."""

from __future__ import annotations

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState
from mqlake.formats.config.topics import PERM_INHERIT, PERM_READ, PERM_WRITE, Topic
from mqlake.protocol import naming
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

_LONGEST_TYPE = 64
PERMISSIONS = PERM_READ | PERM_WRITE | PERM_INHERIT


def check_topic(state: BrokerState, runtime: BrokerRuntime, topic: Topic) -> None:
    """Refuse a topic that cannot be created or changed as requested.

    Raises:
        RemotingError: its name, queues, permission or type are not allowed, or a limit is reached.
    """
    name = topic.topic_name
    fault = naming.topic_fault(name)
    if fault is not None:
        raise RemotingError(ResponseCode.INVALID_PARAMETER, fault)
    refuse_system(state, runtime, name)
    most = runtime.settings.max_topic_queue_nums
    for queues in (topic.read_queue_nums, topic.write_queue_nums):
        if not 0 <= queues <= most:
            reason = (
                f"the topic[{name}] cannot have {queues} queues; allowed are 0 to {most} "
                "(maxTopicQueueNums)"
            )
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
    if topic.perm & ~PERMISSIONS:
        reason = f"the topic[{name}] cannot have perm {topic.perm}; allowed are 0 to {PERMISSIONS}"
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
    if len(topic.topic_filter_type) > _LONGEST_TYPE:
        reason = f"the topic[{name}] has a topicFilterType of more than {_LONGEST_TYPE} characters"
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
    state.topics.check_room(name)


def refuse_system(state: BrokerState, runtime: BrokerRuntime, name: str) -> None:
    """Refuse a change of one of the broker's own topics.

    Raises:
        RemotingError: it is such a topic, and `validateSystemTopicWhenUpdateTopic` is on.
    """
    is_checked = runtime.settings.validate_system_topic_when_update_topic
    if is_checked and state.topics.is_system(name):
        reason = f"The topic[{name}] is conflict with system topic."
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
