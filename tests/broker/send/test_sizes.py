"""docs/broker.md has the sizes up to which a broker accepts a message."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mqlake.broker.send.sizes import SendSizes
from mqlake.formats import record
from mqlake.formats.own_properties import LONGEST_SENT
from mqlake.protocol.errors import RemotingError

PAGE = (Path(__file__).parents[3] / "docs" / "broker.md").read_text(encoding="utf-8")

FILE = 1 << 20


def sizes() -> SendSizes:
    largest = FILE - record.FRAME_SIZE
    state: Any = SimpleNamespace(
        store=SimpleNamespace(appends=SimpleNamespace(largest_record=largest))
    )
    return SendSizes(state)


def stated(row: str) -> int:
    """Return the number of bytes in a row of the table "How long a message may be"."""
    (line,) = (line for line in PAGE.splitlines() if line.startswith(f"| {row}"))
    return int(line.split("|")[2].split()[0].replace(",", ""))


def test_the_longest_properties() -> None:
    assert sizes().properties == stated("properties as they are stored") == LONGEST_SENT


def test_the_longest_properties_of_a_half_message() -> None:
    most = stated("the same, for a half message")
    assert sizes().half_properties == most
    key = "k" * 32
    fits = b"p\x01" + b"x" * (most - len(key) - 3) + b"\x02"
    assert sizes().check(fits, 0, key) == fits
    with pytest.raises(RemotingError, match="the properties have"):
        sizes().check(fits[:-1] + b"x\x02", 0, key)


def test_the_longest_body_with_properties() -> None:
    most = FILE - stated("body and properties")
    properties = b"p\x01" + b"x" * 97 + b"\x02"
    assert sizes().check(properties, most - len(properties)) == properties
    with pytest.raises(RemotingError, match="body and properties have"):
        sizes().check(properties, most - len(properties) + 1)
