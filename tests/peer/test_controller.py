"""Brokers of mqlake's and of RocketMQ's under RocketMQ's controller."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.peer.java_build import JavaMissingError
from tests.replication.failover import Result
from tests.replication.led_failover import LedFailovers
from tests.replication.led_group import JAVA, OURS

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]


def test_brokers_of_both_take_over_from_each_other(tmp_path: Path) -> None:
    """Takes a minute or two: JVMs start four times.

    RocketMQ's broker is the master first, and mqlake's its slave; then it is killed, and the other
    way round. What `python -m tests.replication --controller --nightly` does for long.
    """
    result = asyncio.run(_run(tmp_path))
    assert not result.problems
    assert result.failovers == 2
    assert result.acknowledged > 20


async def _run(path: Path) -> Result:
    try:
        return await LedFailovers(path, 1, (JAVA, OURS)).run(2)
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")
