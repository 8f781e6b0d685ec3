"""One embedded session for all modules that need no other; a process has one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.spark.classic import ClassicSession
from mqlake.spark.session import open_session
from tests.golden import store
from tests.spark.files import digests
from tests.spark.servers import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Compiling a query takes longer than running one of the tests'."""

Steps = list[tuple[str, int, int]]


class Shared:
    """The session, open from its first use until a test needs another one."""

    def __init__(self) -> None:
        self.session: ClassicSession | None = None
        self.steps: Steps = []

    def open(self) -> ClassicSession:
        if self.session is None:
            session = open_session(
                "local[2]",
                progress=lambda *step: self.steps.append(step),
                settings={"spark.executorEnv.PYTHONPATH": str(ROOT), **INTERPRETED},
            )
            assert isinstance(session, ClassicSession)
            self.session = session
        return self.session

    def close(self) -> None:
        if self.session is not None:
            self.session.close()
            self.session = None


# Of the process: tests elsewhere that use these fixtures get the same session.
_SHARED = Shared()


@pytest.fixture(scope="session")
def shared() -> Iterator[Shared]:
    yield _SHARED
    _SHARED.close()


@pytest.fixture
def session(shared: Shared) -> ClassicSession:
    return shared.open()


@pytest.fixture
def steps(shared: Shared) -> Steps:
    """What the session has told of its progress."""
    return shared.steps


@pytest.fixture(scope="module")
def alone(shared: Shared) -> None:
    """For modules that open sessions of their own."""
    shared.close()


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The digests of what the local engine rebuilds from `rmq5-clean`."""
    out = tmp_path_factory.mktemp("local") / "out"
    rebuild(store("rmq5-clean").path, LocalEngine(2), out=out)
    return digests(out)


@pytest.fixture
def spark(session: ClassicSession) -> SparkSession:
    """The shared session as PySpark knows it."""
    return session.spark


@pytest.fixture(params=["pushed down", "not pushed down"])
def pushing(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """The same, with filters handed to Python sources and without."""
    spark.conf.set(PUSH_DOWN, str(request.param == "pushed down").lower())
    yield spark
    spark.conf.unset(PUSH_DOWN)
