"""Brokers for the tests of live sources, and an end of the connections to them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from mqlake.client.consumer import broker_calls
from mqlake.query.live import group
from mqlake.query.live.connection import close_connections
from mqlake.testing import RunningBroker, broker
from tests.broker.running import PATIENCE
from tests.query.live.topics import wait_for_route


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group's offsets that are not committed in time stay as they were."""
    for module in (broker_calls, group):
        monkeypatch.setattr(module, "_TIMEOUT", PATIENCE)


@pytest.fixture(autouse=True)
def _connections() -> Iterator[None]:
    yield
    close_connections()


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    """A broker for the tests of a module; each uses topics of its own."""
    with broker() as one:
        asyncio.run(wait_for_route(one.name_server, "TBW102"))  # a topic that every broker has
        yield one
