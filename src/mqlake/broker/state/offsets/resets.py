"""Offsets that an administrator has reset, until their groups receive them."""

from __future__ import annotations

from mqlake.broker.runtime import BrokerRuntime
from mqlake.broker.state.broker_state import BrokerState


def awaits_reset(
    state: BrokerState, runtime: BrokerRuntime, group: str, topic: str, queue_id: int
) -> bool:
    """Return whether what a group commits for a queue is older than a reset (RocketMQ's
    `useServerSideResetOffset`), or than the creation of the topic.
    """
    offsets = state.store.config.consumer_offsets
    if not offsets.has_reset(group, topic, queue_id):
        return False
    is_applied_here = runtime.settings.use_server_side_reset_offset
    return is_applied_here or offsets.begins_anew(group, topic, queue_id)
