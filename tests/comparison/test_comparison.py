"""A drawn part of the comparison; `make nightly` has every failure."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlake.errors import StoreError
from tests.comparison import draw
from tests.comparison.all import ALL
from tests.comparison.disk_world import DiskWorld
from tests.comparison.run import Step, Workload
from tests.comparison.slave import SLAVE_WORKLOADS
from tests.comparison.store import StoreSubject, StoreWorkload
from tests.comparison.wire import WireWorkload

LEAST = 280
"""Failures over all workloads."""
_OVER_A_WIRE = 8
"""One of each kind: brokers take up to a second and a half for each failure."""
_OF_A_SLAVE = _OVER_A_WIRE // 2
"""Those of a slave take three times as long: the one with syncs has the other half of the kinds."""
_SHARE = 8
"""One of each kind, and one more."""


def _share(workload: Workload) -> int:
    if workload in SLAVE_WORKLOADS:
        return _OF_A_SLAVE
    return _OVER_A_WIRE if isinstance(workload, WireWorkload) else _SHARE


def _first(workload: Workload) -> int:
    """Return the number of the kind of failures that is drawn first."""
    return _OF_A_SLAVE if workload is SLAVE_WORKLOADS[-1] else 0


def test_all_kinds_of_failures_are_drawn_for_slaves() -> None:
    kinds: list[str] = []
    for workload in SLAVE_WORKLOADS:
        order = [*workload.failures]
        kinds += order[_first(workload) :][: _share(workload)]
    assert sorted(kinds) == sorted(SLAVE_WORKLOADS[0].failures)


def test_there_are_enough_failures() -> None:
    assert sum(map(_share, ALL)) >= LEAST


@pytest.mark.parametrize("workload", ALL, ids=lambda one: one.name)
def test_a_failed_operation_changes_nothing_but_its_answer(workload: Workload) -> None:
    tally = draw.run(workload, _share(workload), first=_first(workload))
    assert not tally.violations, "\n".join(tally.violations)
    assert tally.failures.total() == _share(workload)


def _puts(s: StoreSubject) -> Iterator[Step]:
    for _ in range(3):
        yield s.put()


def _violations(workload: StoreWorkload) -> str:
    return "\n".join(draw.run(workload).violations)


def test_a_lost_message_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = StoreWorkload("lost", _puts, failures=["FULL"])
    monkeypatch.setattr(StoreSubject, "_acknowledge", lambda *_: None)  # a refusal is swallowed
    assert "put 1, seen" in _violations(workload)


def test_an_error_of_another_kind_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = StoreWorkload("bare", _puts, failures=["FULL"])

    def fail(subject: StoreSubject, results: object) -> None:
        if subject.world.failure is not None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(StoreSubject, "_acknowledge", fail)
    assert "OSError" in _violations(workload)


def test_a_refusal_that_stays_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = StoreWorkload("stays", _puts, failures=["FULL"])

    def fail(subject: StoreSubject, results: object) -> None:
        if subject.world.failure is not None:
            raise StoreError("No space left on device")

    monkeypatch.setattr(StoreSubject, "_acknowledge", fail)
    assert "refused" in _violations(workload)


def test_worlds_count_what_can_fail() -> None:
    world = DiskWorld("FULL", 1)
    with pytest.raises(StoreError):
        world.disk.make_directory("here")
    assert world.failure == ("here", 28)
    world.disk.make_directory("here")
    assert world.count("FULL") == 2


def test_a_restart_keeps_when_files_were_modified() -> None:
    world = DiskWorld("FULL", 0)
    world.disk.create("file", 10)
    then = world.disk.modified("file")
    world.clock.forward(1000)
    world.restart()
    assert world.disk.modified("file") == then
