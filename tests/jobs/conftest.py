from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that ends need not survive a power cut: `test_swap` looks at what is synced."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
