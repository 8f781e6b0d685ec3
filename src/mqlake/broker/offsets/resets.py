"""Offsets that an administrator has reset, until their groups receive them."""

from __future__ import annotations

from mqlake.broker.parts import Parts


def awaits_reset(parts: Parts, group: str, topic: str, queue_id: int) -> bool:
    """Return whether what a group commits for a queue is older than a reset (RocketMQ's
    `useServerSideResetOffset`).
    """
    is_reset = parts.store.config.consumer_offsets.has_reset(group, topic, queue_id)
    return is_reset and parts.settings.use_server_side_reset_offset
