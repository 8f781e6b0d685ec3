"""Java and Spark, and whether an embedded Spark starts."""

from __future__ import annotations

import time
from importlib.util import find_spec

from mqlake.doctor.finding import CheckResult, Severity
from mqlake.errors import MqlakeError


def java() -> CheckResult:
    """Report the Java runtime that Spark would use; a problem only if Spark is installed."""
    from mqlake.spark.java import find_java

    try:
        found = find_java()
    except MqlakeError as error:
        state = Severity.PROBLEM if find_spec("pyspark") else Severity.NOTE
        return CheckResult("java", state, str(error), "apt install default-jre-headless")
    return CheckResult("java", Severity.OK, f"Java {found.version} in {found.home}")


def spark() -> CheckResult:
    """Start an embedded Spark, run one job on it, and report how long this took."""
    begin = time.perf_counter()
    try:
        from mqlake.spark.session import open_session

        with open_session("local[1]") as session:
            count = session.spark.range(1000).count()
            version = session.spark.version
    except ModuleNotFoundError as error:
        found = f"{error.name} is not installed"
        return CheckResult("spark", Severity.PROBLEM, found, "pip install 'mqlake[spark]'")
    except Exception as error:  # noqa: BLE001 (whatever Spark raises is the finding)
        reason = " ".join(str(error).split())
        return CheckResult("spark", Severity.PROBLEM, f"it does not start: {reason}")
    seconds = time.perf_counter() - begin
    found = f"Spark {version} starts, and counted {count:,} rows, in {seconds:.1f} s"
    return CheckResult("spark", Severity.OK, found)
