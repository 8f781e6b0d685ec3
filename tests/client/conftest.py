"""What holds for the tests of clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlake.client import Producer
from tests.broker.running import PATIENCE

pytest.register_assert_rewrite("tests.client.behaviour.cases")


@pytest.fixture(scope="module", autouse=True)
def _patient_producers() -> Iterator[None]:
    """Let a send outlast a pause of the machine that is longer than the default of 3 seconds."""
    defaults = Producer.__init__.__kwdefaults__
    assert defaults is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(defaults, "timeout", PATIENCE)
        yield
