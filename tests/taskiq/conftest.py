"""A broker for all tests of a module."""

from __future__ import annotations

from collections.abc import Generator

import pytest

pytest.importorskip("taskiq", reason="these tests need taskiq: pip install 'mqlake[taskiq]'")

from mqlake.testing import RunningBroker
from mqlake.testing import broker as run_broker
from tests.client.patience import patient_producers

__all__ = ["broker", "patient_producers"]


@pytest.fixture(scope="module")
def broker() -> Generator[RunningBroker]:
    """Give a broker to the tests of a module; each test has a topic of its own."""
    with run_broker() as running:
        yield running
