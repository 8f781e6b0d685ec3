"""The responses to a pull.

Upstream: `PullMessageProcessor.composeResponseHeader`.
"""

from __future__ import annotations

from functools import lru_cache

from mqlake.broker.pull.reading import Found
from mqlake.client.cluster import MASTER
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, response
from mqlake.protocol.template import FrameTemplate, frame_template
from mqlake.store.results import Status

_CODES = {
    Status.FOUND: ResponseCode.SUCCESS,
    Status.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    Status.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    # Entries continue after the missing part. Upstream's consumer waits before it reads there.
    Status.OFFSET_FOUND_NULL: ResponseCode.PULL_RETRY_IMMEDIATELY,
    Status.NO_MESSAGE_IN_QUEUE: ResponseCode.PULL_NOT_FOUND,
    Status.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    Status.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
    Status.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
}

OFFSET_RESET = "OFFSET_RESET"
"""The name in `GetMessageStatus` for a group's offset that an administrator has reset."""

_OFFSETS = {"nextBeginOffset": "%d", "minOffset": "%d", "maxOffset": "%d"}
_MOST_TEMPLATES = 64


def code_of(found: Found, offset: int) -> int:
    """Return the response code for what was found from an offset on."""
    if found.status is Status.NO_MESSAGE_IN_QUEUE and offset:
        return ResponseCode.PULL_OFFSET_MOVED
    return _CODES[found.status]


def answer(
    request: Command,
    code: int,
    found: Found,
    topic: Topic,
    group: SubscriptionGroup,
    remark: str,
    suggested: int = MASTER,
) -> Command | bytes:
    """Return the response to a pull, or its frame.

    Args:
        suggested: the id, among the brokers of this name, of the broker to pull from next.
    """
    flags = topic.topic_sys_flag, group.group_sys_flag, suggested
    offsets = found.next_offset, found.min_offset, found.max_offset
    if code == ResponseCode.SUCCESS:
        size = sum(map(len, found.pieces))
        template = messages_template(request.serialization, remark, topic, group, suggested)
        head = template.fill(*offsets, request.opaque, body=size)
        return b"".join((head, *found.pieces))
    values = dict(zip(_OFFSETS, map(str, offsets), strict=True))
    return response(request, code, _flags(*flags) | values, remark=remark)


def messages_template(
    serialization: int, remark: str, topic: Topic, group: SubscriptionGroup, suggested: int
) -> FrameTemplate:
    """Return the response with messages, without the offsets, the opaque and the messages.

    The gaps are the next, the least and the greatest offset.
    """
    flags = topic.topic_sys_flag, group.group_sys_flag, suggested
    return _messages(serialization, remark, *flags)


@lru_cache(_MOST_TEMPLATES)
def _messages(
    serialization: int, remark: str, topic_flag: int, group_flag: int, suggested: int
) -> FrameTemplate:
    """Return the response with messages, without the parts that differ between pulls."""
    request = Command(0, serialization=serialization)
    made = response(request, header=_flags(topic_flag, group_flag, suggested), remark=remark)
    return frame_template(made, _OFFSETS)


def _flags(topic_flag: int, group_flag: int, suggested: int) -> dict[str, str]:
    return {
        "suggestWhichBrokerId": str(suggested),
        "topicSysFlag": str(topic_flag),
        "groupSysFlag": str(group_flag),
    }
