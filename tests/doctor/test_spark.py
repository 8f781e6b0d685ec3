"""Java that is missing, and a Spark that starts or does not."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mqlake.doctor import spark as checks
from mqlake.doctor.finding import Severity
from mqlake.errors import JobError
from mqlake.spark import java, session
from tests.spark.servers import quick_environment

CHECK = """
from mqlake.doctor.spark import spark
found = spark()
print(found.state, found.found)
"""


@pytest.mark.parametrize(("installed", "state"), [(True, Severity.PROBLEM), (False, Severity.NOTE)])
def test_missing_java_is_a_problem_if_spark_is_installed(
    monkeypatch: pytest.MonkeyPatch, installed: bool, state: Severity
) -> None:
    def missing() -> None:
        raise JobError("Spark needs Java 17 or newer")

    monkeypatch.setattr(java, "find_java", missing)
    monkeypatch.setattr(checks, "find_spec", lambda _: installed or None)
    found = checks.java()
    assert (found.state, found.found) == (state, "Spark needs Java 17 or newer")


def test_a_spark_that_does_not_start_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise JobError("no room\n  for Spark")

    monkeypatch.setattr(session, "open_session", refuse)
    found = checks.spark()
    assert (found.state, found.found) == (
        Severity.PROBLEM,
        "it does not start: no room for Spark",
    )


@pytest.mark.spark
def test_spark_starts_and_runs_a_job() -> None:
    # Other tests of this process share a session, and a process has only one.
    found = subprocess.run(
        [sys.executable, "-c", CHECK],
        env={**os.environ, **quick_environment()},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    assert found.startswith("ok Spark "), found
    assert "counted 1,000 rows" in found
