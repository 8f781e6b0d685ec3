"""What a consumer is told of a pull.

Upstream: `PullMessageProcessor.composeResponseHeader`.
"""

from __future__ import annotations

from mqlake.broker.pull.reading import Found
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.remoting.codes import ResponseCode
from mqlake.remoting.command import Command, response
from mqlake.store.results import Status

_CODES = {
    Status.FOUND: ResponseCode.SUCCESS,
    Status.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    Status.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    # Entries go on behind what is missing; upstream lets the consumer wait before it looks there.
    Status.OFFSET_FOUND_NULL: ResponseCode.PULL_RETRY_IMMEDIATELY,
    Status.NO_MESSAGE_IN_QUEUE: ResponseCode.PULL_NOT_FOUND,
    Status.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    Status.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    Status.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}

OFFSET_RESET = "OFFSET_RESET"
"""What `GetMessageStatus` calls a group's offset that was set from outside."""

_MASTER = "0"


def code_of(found: Found, offset: int) -> int:
    """Return the response code of what was found from an offset on."""
    if found.status is Status.NO_MESSAGE_IN_QUEUE and offset:
        return ResponseCode.PULL_OFFSET_MOVED
    return _CODES[found.status]


def answer(
    request: Command, code: int, found: Found, topic: Topic, group: SubscriptionGroup, remark: str
) -> Command:
    """Return the response to a pull."""
    made = response(request, code, body=b"".join(found.messages), remark=remark)
    made.known_fields = {
        "suggestWhichBrokerId": _MASTER,
        "nextBeginOffset": str(found.next_offset),
        "minOffset": str(found.min_offset),
        "maxOffset": str(found.max_offset),
        "topicSysFlag": str(topic.topic_sys_flag),
        "groupSysFlag": str(group.group_sys_flag),
    }
    return made
