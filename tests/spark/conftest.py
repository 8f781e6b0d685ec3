"""An embedded session a module that asks for one; a process has one at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlake.spark.classic import ClassicSession
from mqlake.spark.session import open_session
from tests.spark.servers import ROOT


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, int, int]]:
    """What the session has told of its progress."""
    return []


@pytest.fixture(scope="module")
def session(steps: list[tuple[str, int, int]]) -> Iterator[ClassicSession]:
    session = open_session(
        "local[2]",
        progress=lambda *step: steps.append(step),
        settings={"spark.executorEnv.PYTHONPATH": str(ROOT)},
    )
    assert isinstance(session, ClassicSession)
    with session:
        yield session
