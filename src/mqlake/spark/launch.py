"""Start the JVM of a Spark driver.

PySpark starts it through `spark-submit`; this module sets its environment, its flags and the target
of its output. Only an embedded session, which has its own JVM, gets the flags for a quick start.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shlex
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from mqlake.errors import JobError
from mqlake.spark.java import Java
from mqlake.spark.pandas_warning import ignore_pandas_warning

QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData")
"""The JVM only distributes tasks and collects results; Python does the heavy work."""

WORKER_PYTHON = Path(__file__).with_name("worker_python")
"""Starts the Python of `MQLAKE_PYTHON` with the installed PySpark."""

LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")

IMPORTED_LATER = "pyspark.testing.utils"
"""Modules that PySpark imports in its first call of Java, with NumPy and, if installed, pandas.

The imports take a second; they run while the JVM starts.
"""

LOG_VARIABLE = "MQLAKE_SPARK_LOG"
"""Environment variable: the file for the output of an embedded Spark."""


def spark_home() -> Path:
    """Return the directory of Spark in the PySpark package; raise JobError if it is missing."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise JobError(
            "PySpark is not installed: pip install 'mqlake[spark]', or use --engine local"
        )
    home = Path(found.origin).parent
    if not (home / "jars").is_dir():
        raise JobError("this PySpark has no Spark jars: pip install pyspark")
    return home


def embedded_environment(java: Java) -> dict[str, str | None]:
    """Return the environment of an embedded session: this Spark, without other settings."""
    return {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LAUNCHER_OPTS": " ".join(QUICK_START),
        **_python(),
        "SPARK_CONF_DIR": None,
        "SPARK_LOCAL_DIRS": None,
        "PYSPARK_SUBMIT_ARGS": None,
        "SPARK_REMOTE": None,
    }


def _python() -> dict[str, str | None]:
    """Return the variables with which Spark starts Python by `WORKER_PYTHON`, if executable."""
    python = str(WORKER_PYTHON) if os.access(WORKER_PYTHON, os.X_OK) else sys.executable
    return {
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "MQLAKE_PYTHON": sys.executable,
    }


def cluster_environment(java: Java) -> dict[str, str | None]:
    """Return the environment of a cluster's driver, which has its own Spark and settings."""
    return {
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def embedded_flags(archive: Path | None) -> str:
    """Return the options of an embedded JVM as one string, which Spark expects."""
    flags = [*QUICK_START, f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"]
    if archive is not None:
        flags.append(f"-XX:SharedArchiveFile={archive}")
    return shlex.join(flags)


@contextmanager
def environment(changes: Mapping[str, str | None]) -> Generator[None]:
    """Set environment variables (None: unset) and restore them; PySpark has no other interface."""
    before = {name: os.environ.get(name) for name in changes}
    _set(changes)
    try:
        yield
    finally:
        _set(before)


def _set(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def start_jvm(conf: Any, output: IO[bytes] | int) -> Any:
    """Start the JVM for a SparkConf; its output goes to `output`, never to stdout.

    Returns Py4J's gateway. Raises JobError with the last line that the JVM printed.
    """
    from pyspark import java_gateway
    from pyspark.errors import PySparkRuntimeError

    slow = threading.Thread(target=importlib.import_module, args=(IMPORTED_LATER,), daemon=True)
    with ignore_pandas_warning():
        slow.start()
        try:
            said = {"stdout": output, "stderr": output}
            return cast("Any", java_gateway).launch_gateway(conf, said)
        except PySparkRuntimeError:
            raise JobError(f"Spark's JVM did not start: {_last_line(output)}") from None
        finally:
            slow.join()


def log_file() -> IO[bytes]:
    """Return a file for an embedded Spark's log: the named file, or one without a name."""
    if name := os.environ.get(LOG_VARIABLE):
        try:
            return Path(name).open("a+b")
        except OSError as error:
            raise JobError(f"{LOG_VARIABLE}: {name} cannot be written: {error.strerror}") from None
    return tempfile.TemporaryFile()


def _last_line(output: IO[bytes] | int) -> str:
    if isinstance(output, int):
        return "its output is above"
    output.seek(0)
    lines = output.read().decode(errors="replace").split("\n")
    said = [line.strip() for line in lines if line.strip() and not line.startswith("\tat ")]
    return said[-1] if said else "it printed nothing"
