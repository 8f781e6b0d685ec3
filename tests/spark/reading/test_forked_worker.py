"""What Spark's daemon does after each task of a worker costs little."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from mqlake.spark.reading.forked_worker import spare_collections


@pytest.fixture(autouse=True)
def _frozen_once() -> Iterator[None]:
    spare_collections.cache_clear()
    yield
    spare_collections.cache_clear()
    gc.unfreeze()


def test_collections_leave_out_what_a_forked_worker_has_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    daemon: Any = SimpleNamespace(manager=None)
    monkeypatch.setitem(sys.modules, "pyspark.daemon", daemon)
    before = gc.get_freeze_count()
    spare_collections()
    frozen = gc.get_freeze_count()
    assert frozen > before
    kept = [[] for _ in range(1000)]
    spare_collections()
    # Fewer may be left: what is frozen can be freed.
    assert gc.get_freeze_count() < frozen + len(kept)


def test_other_processes_collect_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pyspark.daemon", raising=False)
    before = gc.get_freeze_count()
    spare_collections()
    assert gc.get_freeze_count() == before
