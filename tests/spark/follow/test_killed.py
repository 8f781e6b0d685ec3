"""Drivers that are killed lose and double nothing, in tables of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mqlake.spark.classic import ClassicSession
from tests.spark.follow import killing, nightly
from tests.spark.follow.drivers import Followed, Kind
from tests.spark.follow.truths import truths

pytestmark = [pytest.mark.spark]

FEW = (Kind("iceberg"), Kind("delta", "keys"))
"""Plain rows of Delta Lake are those of tests/replica and tests/peer/test_lake_on_s3.py."""


@pytest.mark.timeout(900)  # each life starts a JVM
@pytest.mark.parametrize(
    ("kinds", "kills"), [(FEW, 1), pytest.param(killing.KINDS, 3, marks=pytest.mark.nightly)]
)
def test_killed_drivers(
    session: ClassicSession, tmp_path: Path, kinds: Sequence[Kind], kills: int
) -> None:
    def finish(tables: Sequence[Followed]) -> None:
        nightly.finish(session, tables)

    for outcome in killing.run(tmp_path, truths(kinds, 20), kills, 20, finish):
        assert (outcome.kills, outcome.violations) == (kills, 0), outcome
        assert outcome.messages == (kills + 1) * killing.PUTS
