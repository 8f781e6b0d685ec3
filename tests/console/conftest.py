"""A broker that all tests of a file share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlake.testing import broker
from mqlake.testing.running_broker import RunningBroker


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    """A broker with its own name server."""
    with broker() as started:
        yield started
