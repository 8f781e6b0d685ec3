"""Messages as clients send them."""

from __future__ import annotations

from typing import Any

from mqlake.grpc.messages import (
    Message,
    MessageType,
    SendMessageRequest,
    SystemProperties,
    Timestamp,
)
from tests.proxy.serving import named

ID = "01A0B1C2D3E4F50001" + "0" * 16


def message(topic: str = "T", body: bytes = b"hello", **system: Any) -> Message:
    """Return a message; `system` are its system properties, and `user_properties`."""
    user = system.pop("user_properties", {})
    known = {"message_id": ID, "message_type": MessageType.NORMAL} | system
    properties = SystemProperties(**known)
    return Message(
        topic=named(topic), body=body, user_properties=user, system_properties=properties
    )


def send(*messages: Message) -> SendMessageRequest:
    return SendMessageRequest(messages=messages)


def at(milliseconds: int) -> Timestamp:
    return Timestamp(seconds=milliseconds // 1000, nanos=milliseconds % 1000 * 1_000_000)
