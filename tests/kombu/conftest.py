"""A broker for all tests of a module, and connections to it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any

import pytest

pytest.importorskip("celery", reason="these tests need Celery: pip install 'mqlake[celery]'")

from kombu import Connection, pools

import mqlake.kombu  # noqa: F401 (registers the scheme)
from mqlake.testing import RunningBroker
from mqlake.testing import broker as run_broker
from tests.client.patience import patient_producers

__all__ = ["Connect", "broker", "connect", "patient_producers"]

Connect = Callable[..., Any]


@pytest.fixture(scope="module")
def broker() -> Generator[RunningBroker]:
    """Give a broker to the tests of a module; each test has queues of its own."""
    with run_broker() as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def _pools() -> Generator[None]:
    """Close the connections that applications of the same URL share."""
    yield
    pools.reset()


@pytest.fixture
def connect(broker: RunningBroker) -> Generator[Connect]:
    """Return a function that opens a connection with some transport options."""
    with ExitStack() as stack:

        def opened(**options: Any) -> Any:
            url = f"rocketmq://{broker.name_server}/"
            return stack.enter_context(Connection(url, transport_options=options))

        yield opened
