"""What the lane serves together is answered as without it, and stored once."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from mqlake.broker.lane.choice import is_chosen
from mqlake.programs.serve import loop_factory
from tests.broker.lane.mixed.rounds import Round, play

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")

SCRIPTS = int(os.environ.get("MIXED_SCRIPTS", "200"))
"""How many scripts are played in all."""
SEED = int(os.environ.get("MIXED_SEED", "1"))
A_ROUND = 400
"""How many scripts a store receives."""
ROUNDS = {
    "open": Round(is_closed=False, flush="ASYNC_FLUSH", is_patient=True),
    "closed": Round(is_closed=True, flush="ASYNC_FLUSH", is_patient=False),
    "open, withheld": Round(is_closed=False, flush="SYNC_FLUSH", is_patient=False),
    "closed, withheld": Round(is_closed=True, flush="SYNC_FLUSH", is_patient=True),
}


@pytest.mark.timeout(0)
@pytest.mark.parametrize("name", ROUNDS)
def test_all_get_their_own_answers(tmp_path: Path, name: str) -> None:
    left, seed = SCRIPTS // len(ROUNDS), SEED * 1_000_000
    while left > 0:
        seeds = range(seed, seed + min(left, A_ROUND))
        directory = tmp_path / str(seed)
        directory.mkdir()
        # Both of the loops on which brokers run.
        factory = loop_factory() if seed // A_ROUND % 2 else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            found = runner.run(play(directory, ROUNDS[name], seeds))
        assert not found.violations, "\n".join(found.violations)
        if len(seeds) >= 50:
            for what in ("sends", "pulls", "with TLS", "both", "rests", "choked"):
                assert found.counts[what] > 10, (what, found.counts)
        if len(seeds) == A_ROUND:
            assert found.counts["together"] > 0
        left, seed = left - len(seeds), seed + len(seeds)
