"""The report of a damaged stretch."""

from __future__ import annotations

import msgspec

from mqlake.formats.damage import Damage


def test_json_names() -> None:
    damage = Damage("commitlog/00000000000000000000", 5, 7, "why")
    assert msgspec.to_builtins(damage) == {
        "file": "commitlog/00000000000000000000",
        "offset": 5,
        "bytes": 7,
        "reason": "why",
    }
