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

KILLS = 2


@pytest.mark.timeout(900)  # each life starts a JVM
def test_killed_drivers(session: ClassicSession, tmp_path: Path) -> None:
    def finish(tables: Sequence[Followed]) -> None:
        nightly.finish(session, tables)

    kinds = killing.KINDS
    for outcome in killing.run(tmp_path, truths(kinds, 20), KILLS, 20, finish):
        assert (outcome.kills, outcome.violations) == (KILLS, 0), outcome
        assert outcome.messages == (KILLS + 1) * killing.PUTS
