"""Spark's Python worker daemon with the kernels already loaded (`spark.python.daemon.module`).

Spark starts one daemon for each executor, which forks a worker for each core. Numba and the kernels
cost most of a second in every process that loads them, so the daemon does it once, before it forks,
also for the worker that replaces a killed one.
"""

from __future__ import annotations

import gc
import importlib
import sys
from contextlib import redirect_stdout


def preload() -> None:
    """Load what tasks need. A task reports what is missing."""
    try:
        importlib.import_module("pyspark.worker")
        # The kernels for Arrow are not loaded: pyarrow starts threads, which a process that forks
        # should not have.
        importlib.import_module("mqlake.dispatch.warm_up").load(export=False, live=False)
    except Exception as error:  # noqa: BLE001  a daemon that does not start says less than a task that fails
        sys.stderr.write(f"kernels are not preloaded: {error}\n")
    # Spark's daemon collects garbage after each task, which takes 30 ms with Numba's objects, and
    # nothing if they are frozen. Pages that the collector does not touch remain shared between the
    # workers.
    gc.collect()
    gc.freeze()


def main() -> None:
    """Preload, then serve as PySpark's own daemon does."""
    from pyspark.daemon import manager

    with redirect_stdout(sys.stderr):  # Spark reads the daemon's port from stdout.
        preload()
    manager()


if __name__ == "__main__":
    main()
