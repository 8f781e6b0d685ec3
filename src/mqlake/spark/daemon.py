"""Spark's Python worker daemon with the kernels already loaded (`spark.python.daemon.module`).

Spark starts one daemon an executor, which forks a worker for each core. Numba and the kernels cost
most of a second in every process that loads them, so the daemon does it once, before it forks; that
also covers the worker that replaces a killed one.
"""

from __future__ import annotations

import gc
import importlib
import sys
from contextlib import redirect_stdout


def preload() -> None:
    """Load what tasks need. Whatever is missing here is the task's to report, in its own words."""
    try:
        importlib.import_module("pyspark.worker")
        # Not those for Arrow: pyarrow starts threads, which a process that forks should not have.
        importlib.import_module("mqlake.dispatch.warm_up").load(export=False, live=False)
    except Exception as error:  # noqa: BLE001  a daemon that does not start says less than a task that fails
        sys.stderr.write(f"kernels are not preloaded: {error}\n")
    # Spark's daemon collects garbage after each task: 30 ms with Numba's objects, nothing when they
    # are frozen, and pages that the collector does not touch stay shared between the workers.
    gc.collect()
    gc.freeze()


def main() -> None:
    """Preload, then serve as PySpark's own daemon does."""
    from pyspark.daemon import manager

    with redirect_stdout(sys.stderr):  # on stdout, Spark waits for the daemon's port
        preload()
    manager()


if __name__ == "__main__":
    main()
