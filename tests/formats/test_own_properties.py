"""docs/live-store.md has the room that is reserved for properties that are added later."""

from __future__ import annotations

from pathlib import Path

from mqlake.formats.own_properties import CHECKED, LONGEST_PUT, ROLLED, TIMED, room_for
from mqlake.formats.properties import MAX_LENGTH

PAGE = (Path(__file__).parents[2] / "docs" / "live-store.md").read_text(encoding="utf-8")


def test_the_reserved_room_is_as_the_page_says() -> None:
    assert f"| {room_for(ROLLED)} bytes of its properties are reserved |" in PAGE
    of_half = f"{room_for(CHECKED)} bytes are reserved; {room_for(TIMED)} more if it asks for"
    assert of_half in PAGE
    assert f"| {MAX_LENGTH - LONGEST_PUT} bytes are reserved for both kinds |" in PAGE
