"""Handles of delayed messages, as RocketMQ's clients read them."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.protocol.handles.recall import RecallHandle, parse_recall_handle

HANDLE = RecallHandle("Orders", "broker-a", 1_700_000_000_001, "7F000001ABCD")


def encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode()


def test_a_recall_handle_is_decoded_as_it_was_encoded() -> None:
    assert HANDLE.text == encoded("v1 Orders broker-a 1700000000001 7F000001ABCD")
    assert parse_recall_handle(HANDLE.text) == HANDLE
    assert parse_recall_handle(HANDLE.text.rstrip("=")) == HANDLE
    assert parse_recall_handle(encoded("v1 Orders broker-a 1700000000001 7F000001ABCD x")) == HANDLE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ä",
        "no handle",
        encoded("v2 Orders broker-a 1700000000001 7F000001ABCD"),
        encoded("v1 Orders broker-a 1700000000001"),
        encoded("v1 Orders broker-a -1 7F000001ABCD"),
        encoded("v1 Orders broker-a 1" + "0" * 18 + " 7F000001ABCD"),
        encoded(f"v1 {'x' * 3000} broker-a 1 7F000001ABCD"),
        urlsafe_b64encode(b"v1 \xff b 1 k").decode(),
    ],
)
def test_invalid_recall_handles_are_refused(text: str) -> None:
    with pytest.raises(RemotingError, match="recall handle is invalid") as found:
        parse_recall_handle(text)
    assert found.value.code == ResponseCode.ILLEGAL_OPERATION
