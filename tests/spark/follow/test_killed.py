"""Drivers that are killed lose and double nothing, in tables of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mqlake.spark.classic import ClassicSession
from tests.spark.follow import killing, nightly
from tests.spark.follow.drivers import Followed
from tests.spark.follow.truths import truths

pytestmark = [pytest.mark.spark]

KILLS = [1, pytest.param(3, marks=pytest.mark.nightly)]


@pytest.mark.timeout(900)  # each life starts a JVM
@pytest.mark.parametrize("kills", KILLS)
def test_killed_drivers(session: ClassicSession, tmp_path: Path, kills: int) -> None:
    def finish(tables: Sequence[Followed]) -> None:
        nightly.finish(session, tables)

    kinds = killing.KINDS
    for outcome in killing.run(tmp_path, truths(kinds, 20), kills, 20, finish):
        assert (outcome.kills, outcome.violations) == (kills, 0), outcome
        assert outcome.messages == (kills + 1) * killing.PUTS
