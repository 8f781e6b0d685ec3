"""The log of the source, in Spark's Python workers.

Warnings go to the workers' stderr. Other lines, such as the access path of each query, are kept in
`python_worker_logs()` if `spark.sql.pyspark.worker.logging.enabled` is on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

NAME = "mqlake.spark.source"


def logger() -> logging.Logger:
    """Return the log. Its level lets Spark's handler receive everything; without that handler,
    warnings are shown.
    """
    found = logging.getLogger(NAME)
    found.setLevel(logging.INFO)
    return found


def tell_ignored(options: Iterable[str]) -> None:
    """Log which of the given options have no effect in a query."""
    for name in options:
        logger().info("option %s has no effect here", name)
