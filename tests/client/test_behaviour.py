"""Producers and consumers with mqlake's own broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from mqlake.testing import RunningBroker, broker
from tests.client.behaviour.cases import CASES, POP_CASES, Case, run


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker() as found:
        yield found


@pytest.fixture(autouse=True)
def _offsets_in_a_new_home(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))


@pytest.mark.parametrize("case", [*CASES, *POP_CASES], ids=lambda case: case.__name__)
def test_behaviour(case: Case, running: RunningBroker) -> None:
    asyncio.run(run(case, running.name_server))
