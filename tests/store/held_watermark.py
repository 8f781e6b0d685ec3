"""A watermark that something besides this disk holds back, as replicas will."""

from __future__ import annotations

from typing import Any

import pytest

from mqlake.store.watermarks import Watermarks

_FAR = 1 << 62


class HeldWatermark:
    """Keeps `kept`, and so `confirmed`, of all stores at a physical offset until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = _FAR
        usual: Any = Watermarks.kept

        def kept(watermarks: Watermarks) -> int:
            return min(self.at, usual.fget(watermarks))

        monkeypatch.setattr(Watermarks, "kept", property(kept))

    def hold(self, physical_offset: int) -> None:
        """Confirm nothing from an offset on."""
        self.at = physical_offset

    def release(self) -> None:
        """Confirm what this disk has."""
        self.at = _FAR
