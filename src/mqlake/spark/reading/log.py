"""The log of the source, in Spark's Python workers.

Warnings go to the workers' stderr. What is said beside, such as the access path of each query, is
kept where `spark.sql.pyspark.worker.logging.enabled` is on: in `python_worker_logs()`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

NAME = "mqlake.spark.source"


def logger() -> logging.Logger:
    """Return the log. Its level lets Spark's handler have all; without one, warnings are shown."""
    found = logging.getLogger(NAME)
    found.setLevel(logging.INFO)
    return found


def tell_ignored(options: Iterable[str]) -> None:
    """Say which of the given options mean nothing in a query."""
    for name in options:
        logger().info("option %s means nothing here", name)
