"""From a master to a Delta table while everything is killed: nothing is lost or doubled.

Spark is started twice, which takes its time.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.replica.pipeline import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.mark.parametrize("is_one", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_each_is_killed_once(tmp_path: Path, is_one: bool) -> None:
    outcome = asyncio.run(Pipeline(tmp_path, 1, is_one=is_one).run(1))
    assert outcome.problems == []
    assert outcome.messages >= outcome.acknowledged > 0
    assert outcome.kills == {"follow": 1, "replica": 1, "master": 1}
