"""When a server's process looks for cyclic garbage."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from mqlake.programs import garbage
from mqlake.programs.garbage import quiet_collection
from tests.until import until


@pytest.fixture(autouse=True)
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look every few milliseconds; leave the interpreter as it was."""
    monkeypatch.setattr(garbage, "_LOOK", 0.01)
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    assert gc.get_threshold() == thresholds
    gc.enable()


class _Cycle:
    def __init__(self) -> None:
        self.itself = self


def _old_garbage() -> weakref.ref[_Cycle]:
    """Return a dead cycle of the oldest generation, of which a collection is due."""
    cycle = _Cycle()
    for _ in range(12):
        gc.collect(1)
    return weakref.ref(cycle)


def test_old_garbage_goes_while_there_is_little_to_do() -> None:
    async def main() -> None:
        with quiet_collection():
            dead = _old_garbage()
            assert dead() is not None
            await _gone(dead)

    asyncio.run(main())


async def _gone(dead: weakref.ref[_Cycle]) -> None:
    await until(lambda: dead() is None)


@pytest.mark.parametrize("is_overdue", [False, True])
def test_a_thread_that_always_works_looks_only_when_overdue(
    is_overdue: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_overdue:
        monkeypatch.setattr(garbage, "_LONGEST", 0.0)
    looks = 0

    def always_worked() -> float:
        """Return a time that no busy machine makes shorter than what has passed."""
        nonlocal looks
        looks += 1
        return time.monotonic()

    monkeypatch.setattr(garbage, "time", SimpleNamespace(thread_time=always_worked))

    async def main() -> None:
        with quiet_collection():
            dead = _old_garbage()
            if is_overdue:
                await _gone(dead)
            else:
                await until(lambda: looks > 20)
                assert dead() is not None

    asyncio.run(main())


def test_objects_from_before_quiet_collection_are_never_collected() -> None:
    async def main() -> None:
        dead = _old_garbage()
        with quiet_collection():
            gc.collect()
            assert dead() is not None

    asyncio.run(main())
