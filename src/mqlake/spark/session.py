"""Open Spark for mqlake's jobs: on this machine, on a cluster, or over Spark Connect."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from mqlake.jobs.engine import Engine
from mqlake.jobs.local import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Session(Protocol):
    """An open Spark; a context manager that closes it."""

    @property
    def engine(self) -> Engine:
        """The engine that runs mqlake's tasks."""
        ...

    @property
    def spark(self) -> SparkSession:
        """The SQL session, created on first access: an embedded one takes another second."""
        ...

    def check_shared(self, directory: Path, *inputs: Path) -> None:
        """Raise JobError unless all executors see `directory` and `inputs` (`shared_check`)."""
        ...

    def close(self) -> None:
        """Stop what was started; anything that existed before continues to run."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *failure: object) -> None: ...


def open_session(
    master: str | None = None,
    *,
    progress: Progress | None = None,
    settings: Mapping[str, str] | None = None,
) -> Session:
    """Open a session; `progress` is notified of the progress of each job of its engine.

    `master`:
      - None, `local`, `local[n]`, `local[*]`: an embedded Spark on this machine;
      - `spark://host:port`, `yarn`, `k8s://…`: a cluster, with its own settings;
      - `sc://host:port`: Spark Connect.
    `settings` are Spark properties that override mqlake's own.

    Raises JobError, in one line, if Java or PySpark is missing or the master does not answer.
    """
    chosen = dict(settings or {})
    if master is not None and master.startswith("sc://"):
        from mqlake.spark.connect import ConnectSession

        return ConnectSession(master, progress, chosen)

    from mqlake.spark.classic import local_master, open_cluster, open_embedded

    local = local_master(master)
    if local is not None:
        return open_embedded(local, progress, chosen)
    assert master is not None
    return open_cluster(master, progress, chosen)
