"""Which files are tested first, and in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scheduling import (
    FIRST,
    SHARED_BROWSER,
    SHARED_SPARK,
    SHARED_TREES,
    SPARKS_OF_THEIR_OWN,
    place,
    scope_of,
)

ROOT = Path(__file__).parents[1]


def test_files_of_the_lists_exist() -> None:
    for path in (*FIRST, *SHARED_SPARK, SHARED_TREES, SHARED_BROWSER, *SPARKS_OF_THEIR_OWN):
        assert (ROOT / path).exists(), path


def test_files_that_share_a_session_are_tested_in_one_process() -> None:
    shared = {scope_of(f"{path}::test") for path in ("tests/spark/a.py", "tests/spark/b/c.py")}
    assert len(shared) == 1
    assert {scope_of(f"{path}::test") for path in SHARED_SPARK[1:]} == shared


@pytest.mark.parametrize("folder", [SHARED_TREES, SHARED_BROWSER])
def test_files_that_share_trees_or_a_browser_are_tested_in_one_process(folder: str) -> None:
    assert scope_of(f"{folder}test_a.py::test") == scope_of(f"{folder}test_b.py::test")


def test_a_file_that_starts_a_spark_is_in_no_process_of_the_shared_one() -> None:
    own = [scope_of(f"{path}::test[a::b]") for path in SPARKS_OF_THEIR_OWN]
    assert own == list(SPARKS_OF_THEIR_OWN)


def test_a_file_that_uses_a_session_alone_is_in_the_list() -> None:
    """Such a file in the process of the shared session would close it: each start takes seconds."""
    for path in (ROOT / "tests" / "spark").rglob("test_*.py"):
        if 'usefixtures("alone")' in path.read_text():
            assert str(path.relative_to(ROOT)) in SPARKS_OF_THEIR_OWN


def test_the_longest_files_come_first() -> None:
    places = [place(f"{path}::test") for path in (*FIRST, "tests/store/test_store.py")]
    assert places == sorted(set(places))
    assert place("tests/peer/test_lake_on_s3.py::test") == places[0]
