"""Read `config/messageRequestMode.json` (docs/formats/config.md).

RocketMQ 5: `MessageRequestModeManager`.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec


class MessageRequestMode(msgspec.Struct, frozen=True, rename="camel"):
    """Whether a group pulls or pops a topic: `mode` is "PULL" or "POP"."""

    topic: str = ""
    consumer_group: str = ""
    mode: str = "PULL"
    pop_share_queue_num: int = 0


class MessageRequestModes(msgspec.Struct, frozen=True, rename="camel"):
    """All modes that were set: topic, then group."""

    file_name: ClassVar[str] = "messageRequestMode.json"

    message_request_mode_map: dict[str, dict[str, MessageRequestMode]] = {}
