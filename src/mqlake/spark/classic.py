"""Sessions with their own driver JVM: embedded on this machine, or of a cluster."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mqlake.errors import JobError
from mqlake.jobs.local import Progress
from mqlake.spark import cds, launch
from mqlake.spark.driver import Driver
from mqlake.spark.engine import SparkEngine
from mqlake.spark.java import Java, find_java
from mqlake.spark.server_check import require_server
from mqlake.spark.shared_check import check_shared

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

ATTEMPTS = 4
"""Attempts of a task; local masters take it as their second number, otherwise they try once."""

LOCAL = re.compile(r"local(?:\[(\*|\d+)(?:, *(\d+))?\])?")
YARN_SETTINGS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR", "SPARK_HOME")
"""Variables of which Spark needs one to find YARN: the last two, with files that set the first."""
CLUSTER = re.compile(r"spark://|k8s://|yarn$|local-cluster\[")
STANDALONE_PORT = 7077
STDERR = 2
JAVA_OPTIONS = "spark.driver.extraJavaOptions"

COMMON = {
    "spark.app.name": "mqlake",
    "spark.python.daemon.module": "mqlake.spark.daemon",
    "spark.ui.showConsoleProgress": "false",
}
EMBEDDED = {
    **COMMON,
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.ui.enabled": "false",
    "spark.ui.liveUpdate.period": "0",  # Progress must not lag.
}


class ClassicSession:
    """A SparkContext, and a SQL session over it that is created on demand (`session.Session`)."""

    def __init__(self, driver: Driver, progress: Progress | None) -> None:
        self._driver: Driver | None = driver
        self.context: SparkContext = driver.context
        self.engine = SparkEngine(driver.context, progress)
        self._sql: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        """The SQL session, created on first access, and the active one of the thread that asks.

        Spark finds Python data sources for writes in the active session of the JVM's thread only,
        and PySpark makes it so in the thread that creates it.
        """
        if self._sql is None:
            from pyspark.sql import SparkSession

            self._sql = SparkSession(self.context)
        untyped: Any = self._sql
        java_class = untyped._get_j_spark_session_class(untyped._jvm)
        java_class.setActiveSession(untyped._jsparkSession)
        return self._sql

    def check_shared(self, directory: Path, *inputs: Path) -> None:
        """Raise JobError unless all executors see `directory` and `inputs`."""
        if not self.engine.on_one_host:
            check_shared(self.engine, directory, *inputs)

    def close(self) -> None:
        """Stop Spark and remove its temporary files."""
        if self._driver is not None:
            self._driver.stop()
        self._driver = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def local_master(master: str | None) -> str | None:
    """Return the embedded master of a URL, with its number of attempts; None for a cluster."""
    found = LOCAL.fullmatch(master or "local[*]")
    if found is None:
        return None
    return f"local[{found[1] or 1},{found[2] or ATTEMPTS}]"


def open_embedded(
    master: str, progress: Progress | None, settings: dict[str, str]
) -> ClassicSession:
    """Open an embedded Spark: quiet, on the loopback interface, with files in a private
    directory.
    """
    java = find_java()
    archive = cds.archive(java, launch.spark_home())
    if not cds.usable(archive) or JAVA_OPTIONS in settings:
        return ClassicSession(_embedded(master, java, None, settings), progress)
    assert archive is not None
    cds.note_use(archive)
    try:
        driver = _embedded(master, java, archive, settings)
    except JobError:
        # The JVM checks an archive and ignores one that does not fit. If the archive is harmful all
        # the same, it is removed; other faults would occur without it, too.
        archive.unlink(missing_ok=True)
        driver = _embedded(master, java, None, settings)
    return ClassicSession(driver, progress)


def _embedded(master: str, java: Java, archive: Path | None, settings: dict[str, str]) -> Driver:
    scratch = Path(tempfile.mkdtemp(prefix="mqlake-spark-"))
    own = {
        **EMBEDDED,
        "spark.master": master,
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        JAVA_OPTIONS: launch.embedded_flags(archive),
    }
    try:
        with launch.environment(launch.embedded_environment(java)), launch.log_file() as output:
            return Driver(own | settings, output, scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def open_cluster(
    master: str, progress: Progress | None, settings: dict[str, str]
) -> ClassicSession:
    """Open a session on an existing cluster, with the settings of its Spark installation.

    Its log goes to stderr. Raises JobError within seconds if a standalone master does not answer.
    """
    if not CLUSTER.match(master):
        raise JobError(
            f"{master!r} is not a Spark master: use local[n], spark://host:port, yarn, "
            "k8s://… or sc://host:port"
        )
    if master == "yarn" and not any(os.environ.get(name) for name in YARN_SETTINGS):
        raise JobError(
            "yarn: set HADOOP_CONF_DIR to the directory of the cluster's configuration files"
        )
    if master.startswith("spark://"):
        require_server("Spark master", master, STANDALONE_PORT)
    java = find_java()
    with launch.environment(launch.cluster_environment(java)):
        driver = Driver({**COMMON, "spark.master": master, **settings}, STDERR)
    return ClassicSession(driver, progress)
