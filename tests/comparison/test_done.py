"""Runs of the comparison continue where others ended."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from tests.comparison import page
from tests.comparison.all import ALL, MODULES
from tests.comparison.done import Compared, Done, Part
from tests.comparison.draw import Tally
from tests.proved_code import code_of

FIRST = Part(ALL[0].name, ALL[0].failures[0])
CODE = code_of(MODULES[FIRST.workload])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "done.json"


def _compared(code: str = CODE) -> Compared:
    tally = Tally(FIRST.workload, Counter({FIRST.failure: 7}), ["it was lost"])
    return Compared.now(FIRST, tally, code, 60)


def test_the_next_run_has_what_was_not_compared(path: Path) -> None:
    every = Done(path).missing()
    assert len(every) == sum(len(each.failures) for each in ALL)
    Done(path).add(_compared())
    assert Done(path).missing() == every[1:]
    assert Done(path).missing(frozenset({FIRST.workload})) == every[1 : len(ALL[0].failures)]


def test_what_was_compared_with_other_code_is_compared_again(path: Path) -> None:
    Done(path).add(_compared("other"))
    assert FIRST in Done(path).missing()


def test_what_came_of_a_part_replaces_what_was_there(path: Path) -> None:
    done = Done(path)
    done.add(_compared("other"))
    done.add(_compared())
    assert list(Done(path).in_order()) == [_compared()]


def test_page_tells_what_was_compared_with_the_code_as_it_is(path: Path, tmp_path: Path) -> None:
    done, written = Done(path), tmp_path / "page.md"
    done.add(_compared())
    old = msgspec.structs.replace(
        _compared("other"), workload=ALL[1].name, failure=ALL[1].failures[0], violations=[]
    )
    done.add(old)
    page.write(done, written)
    text = written.read_text()
    assert "**7 single failures over 2 workloads, 1 violations**" in text
    kinds = len(ALL[0].failures), len(ALL[1].failures)
    assert f"| `{ALL[0].name}` | 7 | 1 | 1 of {kinds[0]} kinds of failures |" in text
    assert f"| `{ALL[1].name}` | 7 | 0 | 0 of {kinds[1]} kinds of failures |" in text
    assert "- it was lost" in text
