"""An administrator changes things while clients use them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.in_use.run import one


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_and_nothing_comes_back(tmp_path: Path, seed: int) -> None:
    promises = one(tmp_path, seed)
    assert promises.violations == []
    assert promises.got.keys() > {"one", "two", "agents", "freshOrders"}
