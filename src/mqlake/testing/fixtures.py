"""`mqlake.testing.broker` as a pytest fixture.

In `conftest.py`: `from mqlake.testing.fixtures import broker`. Each test that uses it gets a new
broker. To share a broker between tests, write a fixture of a wider scope around
`mqlake.testing.broker`.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from mqlake.testing import running_broker


@pytest.fixture
def broker() -> Generator[running_broker.RunningBroker]:
    """Yield a broker and a name server on free ports, with a new store."""
    with running_broker.broker() as running:
        yield running
