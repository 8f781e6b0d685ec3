"""Sends that outlast a pause of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mqlake.client import Producer
from tests.broker.running import PATIENCE


@contextmanager
def patience() -> Iterator[None]:
    """Give sends more time than the default of 3 seconds."""
    defaults = Producer.__init__.__kwdefaults__
    assert defaults is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(defaults, "timeout", PATIENCE)
        yield


@pytest.fixture(scope="module", autouse=True)
def patient_producers() -> Iterator[None]:
    """Do so for all tests of a module."""
    with patience():
        yield
