"""One embedded session for all modules that need no other; a process has one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from mqlake.jobs.local import LocalEngine
from mqlake.jobs.rebuild import rebuild
from mqlake.spark.classic import ClassicSession
from tests.golden import store
from tests.spark.files import digests
from tests.spark.shared_session import SHARED, Shared, Steps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSH_DOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="session")
def shared() -> Iterator[Shared]:
    yield SHARED
    SHARED.close()


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
