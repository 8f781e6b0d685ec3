"""How many offsets groups may have."""

from __future__ import annotations

from mqlake.broker.parts import Parts
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError


def has_room(parts: Parts, more: int = 1) -> bool:
    """Say whether so many offsets more may be kept (`maxConsumerOffsetNums`)."""
    offsets = parts.store.config.consumer_offsets
    return len(offsets) + more <= parts.settings.max_consumer_offset_nums


def check_offsets(parts: Parts, group: str, topic: str, more: int = 1) -> None:
    """Refuse offsets of a group in queues of a topic that would be too many with all others.

    Raises:
        RemotingError: there would be more than `maxConsumerOffsetNums`.
    """
    offsets, most = (
        parts.store.config.consumer_offsets,
        parts.settings.max_consumer_offset_nums,
    )
    if not has_room(parts, more):
        reason = (
            f"the offset of group {group} in topic {topic} is not kept: there are {len(offsets)}"
            f" offsets, and {most} are allowed (maxConsumerOffsetNums); delete groups or topics,"
            " or raise the setting"
        )
        raise RemotingError(ResponseCode.SYSTEM_ERROR, reason)
