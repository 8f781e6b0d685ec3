"""Refuse an output directory that executors do not share. The hosts here are directories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mqlake.errors import JobError
from mqlake.jobs.local import LocalEngine
from mqlake.spark import shared_check
from mqlake.spark.shared_check import TASKS_A_SLOT, check_shared


class TwoHosts:
    """An engine of two executors, of which the second has `elsewhere` under each path's name."""

    parallelism = 2

    def __init__(self, elsewhere: Callable[[Any], Any]) -> None:
        self.elsewhere = elsewhere
        self.looks = 0

    def run(self, task: Callable[[Any], Any], jobs: Sequence[Any], title: str) -> list[Any]:
        self.looks += len(jobs)
        return [task(self.elsewhere(job) if n % 2 else job) for n, job in enumerate(jobs)]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_check, "PATIENCE", 0.0)
    monkeypatch.setattr(shared_check, "PAUSE", 0.0)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    out = tmp_path / "out"
    out.mkdir()
    return out


def test_a_shared_directory_is_looked_at_from_every_core(out: Path) -> None:
    (out / "something else").touch()
    engine = TwoHosts(lambda look: look)

    check_shared(engine, out)

    assert engine.looks == 1 + 2 * TASKS_A_SLOT
    assert [path.name for path in out.iterdir()] == ["something else"]


def test_threads_share(out: Path) -> None:
    check_shared(LocalEngine(2), out, out.parent)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("exists", [True, False])
def test_a_directory_of_the_same_name_elsewhere_is_refused(
    out: Path, tmp_path: Path, exists: bool
) -> None:
    other = tmp_path / "other"
    if exists:
        other.mkdir()
    engine = TwoHosts(lambda look: replace(look, directory=str(other)))
    with pytest.raises(JobError, match=r"is not shared with the executor on \S+: choose"):
        check_shared(engine, out)
    assert list(out.iterdir()) == []


def test_a_mark_that_the_driver_never_sees_is_refused(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where an executor has a copy of the directory that was made after the driver's mark."""
    leave = shared_check._leave

    def lose(directory: Path, token: str, name: str) -> None:
        if name == "driver":
            leave(directory, token, name)

    monkeypatch.setattr(shared_check, "_leave", lose)
    with pytest.raises(JobError, match=rf"^{out} is not shared"):
        check_shared(TwoHosts(lambda look: look), out)


def test_an_input_that_an_executor_does_not_see_is_named(out: Path, tmp_path: Path) -> None:
    missing = str(tmp_path / "store")
    engine = TwoHosts(lambda look: replace(look, inputs=(missing,)))
    with pytest.raises(JobError, match=rf"^the executor on \S+ does not see {missing}$"):
        check_shared(engine, out, out)


def test_a_directory_still_to_be_made_is_judged_by_the_one_above(out: Path, tmp_path: Path) -> None:
    to_be_made = out / "a" / "b"
    check_shared(TwoHosts(lambda look: look), to_be_made)
    with pytest.raises(JobError, match="is not shared with"):
        check_shared(TwoHosts(lambda look: replace(look, directory=str(tmp_path))), to_be_made)
    assert not to_be_made.exists()


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(JobError, match=r"file cannot be written: Not a directory$"):
        check_shared(LocalEngine(1), tmp_path / "file")


def test_an_executor_that_may_not_write_is_named(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave = shared_check._leave

    def refuse(directory: Path, token: str, name: str) -> None:
        if name != "driver":
            raise PermissionError(13, "Permission denied")
        leave(directory, token, name)

    monkeypatch.setattr(shared_check, "_leave", refuse)
    with pytest.raises(JobError, match=rf"cannot write {out}: Permission denied$"):
        check_shared(LocalEngine(1), out)
