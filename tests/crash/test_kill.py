"""Ten processes die; `make nightly` kills two hundred."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash.kill import Kills

KILLS = 5


@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_nothing_acknowledged_dies_with_the_process(flush: str, tmp_path: Path) -> None:
    kills, dice = Kills(tmp_path / "store", flush), random.Random(flush)
    for _ in range(KILLS):
        kills.kill_one(dice)
    assert kills.kills == KILLS
    assert kills.messages > KILLS
