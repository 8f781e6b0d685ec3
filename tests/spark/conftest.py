"""An embedded session a module that asks for one; a process has one at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.spark.classic import ClassicSession
from mqlake.spark.session import open_session
from tests.golden import store
from tests.spark.files import digests
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


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of what the local engine rebuilds from `rmq5-clean`."""
    out = tmp_path_factory.mktemp("local") / "out"
    rebuild(store("rmq5-clean").path, LocalEngine(2), out=out)
    return digests(out)
