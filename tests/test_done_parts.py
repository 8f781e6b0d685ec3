"""Long proofs continue where they were stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.done_parts import DonePart, DoneParts, PartRun, days_of
from tests.proved_code import code_of

MODULE = "tests.proved_code"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "done.json"


def _parts(path: Path) -> DoneParts[int]:
    return DoneParts(path, int, lambda name: MODULE)


def _part(name: str, code: str = "", day: str = "2026-01-01") -> DonePart[int]:
    return DonePart(name, code or code_of(MODULE), day, 1.5, 7)


def test_parts_are_kept_in_the_file(path: Path) -> None:
    assert list(_parts(path)) == []
    for name in ("b", "a"):
        _parts(path).add(_part(name))
    assert list(_parts(path)) == [_part("a"), _part("b")]


def test_a_part_that_was_done_with_other_code_is_to_be_done_again(path: Path) -> None:
    _parts(path).add(_part("a", code="other"))
    assert not _parts(path).is_current("a")
    assert _parts(path).current() == []
    _parts(path).add(_part("a"))
    assert _parts(path).is_current("a")
    assert not _parts(path).is_current("b")


def _nothing() -> None:
    pass


def test_parts_are_done_in_other_processes() -> None:
    run = PartRun(len, lambda name: MODULE, _nothing)
    found = {part.name: part for part in run.run(["a", "bcd"], 2, seconds=60)}
    assert {name: part.result for name, part in found.items()} == {"a": 1, "bcd": 3}
    assert found["a"].code == code_of(MODULE)


def test_nothing_is_begun_after_the_time() -> None:
    assert list(PartRun(len, lambda name: MODULE, _nothing).run(["a"], 1, seconds=0)) == []


def test_days_are_the_first_and_the_last() -> None:
    assert days_of([_part("a")]) == "2026-01-01"
    days = ("2026-01-03", "2026-01-01", "2026-01-02")
    assert days_of(_part("a", day=day) for day in days) == "2026-01-01 to 2026-01-03"
