"""The limit of offsets that groups may have."""

from __future__ import annotations

from mqlake.broker.parts import Parts
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError


def has_room(parts: Parts, more: int = 1) -> bool:
    """Return whether so many more offsets may be stored (`maxConsumerOffsetNums`)."""
    offsets = parts.store.config.consumer_offsets
    return len(offsets) + more <= parts.settings.max_consumer_offset_nums


def check_offsets(parts: Parts, group: str, topic: str, more: int = 1) -> None:
    """Refuse offsets of a group in queues of a topic that would exceed the limit.

    Raises:
        RemotingError: there would be more than `maxConsumerOffsetNums`.
    """
    offsets, most = (
        parts.store.config.consumer_offsets,
        parts.settings.max_consumer_offset_nums,
    )
    if not has_room(parts, more):
        reason = (
            f"the offset of group {group} in topic {topic} is not stored: there are "
            f"{len(offsets)} offsets, and the maximum is {most} (maxConsumerOffsetNums); "
            "delete groups or topics, or raise the setting"
        )
        raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
