"""Brokers whose lane is loaded, and what it has served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mqlake.broker.lane import lane as lane_module
from mqlake.broker.lane import layout
from mqlake.broker.lane.kernel import LaneKernel
from mqlake.broker.lane.lane import Lane
from mqlake.protocol.signature import Credentials
from mqlake.remoting.client import RemotingClient
from tests.broker.lane.raw_client import RawClient
from tests.broker.running import PATIENCE, Running, running, to
from tests.broker.send.random_sends import KEY, TOPIC


def lane_of(broker: Running) -> Lane:
    """Return a broker's lane."""
    server: Any = broker.broker
    lane = server._server._shared.direct
    assert isinstance(lane, Lane)
    return lane


@asynccontextmanager
async def with_lane(
    path: Path, credentials: Credentials | None = None, **settings: object
) -> AsyncIterator[tuple[Running, list[int]]]:
    """Run a broker whose lane is loaded; yield it, and the list of the reasons why its kernel
    returned, of which each is followed by the number of messages that it had put.

    Args:
        credentials: of the user of `Running.client`.
    """
    calls: list[int] = []
    # On a busy machine, no send would be served in a short time, and its connection not join.
    short = patch.object(lane_module, "_SHORT_TURN", int(PATIENCE * 1e9))
    async with running(path, **settings) as broker:
        broker.client = RemotingClient(connect_timeout=PATIENCE, credentials=credentials)
        await broker.send(to(TOPIC, properties=KEY))
        lane: Any = lane_of(broker)
        await asyncio.wait_for(lane.load(), PATIENCE)
        assert lane._is_loaded()
        kernel: Any = lane._kernel
        serve, serve_bytes = kernel.serve, kernel.serve_bytes

        def noted(*arguments: Any) -> int:
            before = kernel.numbers[layout.MESSAGES]
            reason = serve(*arguments)
            calls.extend((reason, kernel.numbers[layout.MESSAGES] - before))
            return reason

        def noted_bytes(*arguments: Any) -> tuple[int, int]:
            found = serve_bytes(*arguments)
            calls.extend((found[0], kernel.numbers[layout.MESSAGES]))
            return found

        assert isinstance(kernel, LaneKernel)
        kernel.serve, kernel.serve_bytes = noted, noted_bytes
        try:
            with short:
                yield broker, calls
        finally:
            await RawClient.close_all()


def served(calls: list[int]) -> int:
    """Return how many messages a lane has put."""
    return sum(calls[1::2])
