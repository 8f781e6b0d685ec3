"""A test's directory is there until all its fixtures have ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def written_until_the_end() -> Iterator[list[Path]]:
    directories: list[Path] = []
    yield directories
    for directory in directories:
        (directory / "last").write_text("A server that stops writes its files.")


def test_a_fixture_that_does_not_ask_for_the_directory_may_write_there(
    written_until_the_end: list[Path], tmp_path: Path
) -> None:
    written_until_the_end.append(tmp_path)
