"""What type checkers are told of the messages is what the messages are."""

from __future__ import annotations

from pathlib import Path

from mqlake.grpc import messages
from mqlake.grpc.messages.stub import stub


def test_the_declarations_follow_from_the_tables() -> None:
    assert Path(messages.__file__).with_suffix(".pyi").read_text() == stub()
