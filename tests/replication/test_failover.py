"""A short run of what `python -m tests.replication --nightly` does for long."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.replication.failover import Failovers, Result


def test_no_acknowledged_message_is_lost_when_masters_are_killed(tmp_path: Path) -> None:
    """Takes 20 seconds: five processes are started."""
    result = asyncio.run(_run(tmp_path))
    assert not result.problems
    assert result.failovers == 1
    assert result.acknowledged > 20


async def _run(path: Path) -> Result:
    return await Failovers(path, 1).run(1)
