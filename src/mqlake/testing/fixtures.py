"""`mqlake.testing.broker` as a fixture of pytest.

In `conftest.py`: `from mqlake.testing.fixtures import broker`. Each test that asks for it gets a
new broker; one that serves many tests is a fixture of that scope around `mqlake.testing.broker`.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from mqlake.testing import running_broker


@pytest.fixture
def broker() -> Generator[running_broker.RunningBroker]:
    """Give a broker and a name server on free ports, on a store of their own."""
    with running_broker.broker() as running:
        yield running
