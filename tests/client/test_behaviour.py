"""Producers and consumers with mqlake's own broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlake.testing import broker
from tests.client.behaviour.cases import CASES, POP_CASES, Case, Outcomes, run


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    with pytest.MonkeyPatch.context() as patch, broker() as running:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield run([*CASES, *POP_CASES], running.name_server)


@pytest.mark.parametrize("case", [*CASES, *POP_CASES], ids=lambda case: case.__name__)
def test_behaviour(case: Case, outcomes: Outcomes) -> None:
    if (failure := outcomes.failures.get(case)) is not None:
        raise failure


def test_no_task_is_left_behind(outcomes: Outcomes) -> None:
    assert not outcomes.tasks_left
