"""Decide whether the filters that Spark pushes down may limit what is read."""

from __future__ import annotations

import sys

import pyspark

from mqlake.query.reading.log import logger

log = logger()

_PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"

SAFE_RELEASES: frozenset[str] = frozenset()
"""Releases of Spark ("4.9") that use pushed filters only for their query.

Spark 4.1 to 4.3 store the plan with these filters in the relation (`PythonDataSourceV2`), and use
it for every other query of the same DataFrame, which then lacks rows. A worker cannot find this out
from Spark, and PySpark has no attribute for it. So a release is listed here once
`tests/spark/source/test_push_down_fault.py` has shown that it answers such queries correctly.
"""

_said: set[str] = set()


def is_used(push_filters: str, otherwise: str) -> bool:
    """Return whether a reader accepts filters.

    Args:
        push_filters: the option `pushFilters`.
        otherwise: what else limits what is read; logged if filters are not accepted.
    """
    if not _is_pushing():
        _say_once(
            "Spark passes no filters to the source: spark.sql.python.filterPushdown.enabled "
            f"is off, or the query has none; {otherwise}"
        )
        return False
    if push_filters == "true" or (push_filters == "auto" and release() in SAFE_RELEASES):
        return True
    _say_once(
        "filters do not limit what is read: this Spark would apply those of one query to "
        f"others on the same DataFrame (option pushFilters); {otherwise}"
    )
    return False


def release() -> str:
    """Return the running release of Spark, without its patch number."""
    return ".".join(pyspark.__version__.split(".")[:2])


def _is_pushing() -> bool:
    """Return whether this process was started to push filters down, which happens only if that is
    enabled.

    Spark does not tell a data source its settings, but it runs different programs.
    """
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return _PUSHING_WORKER in sys.modules or getattr(spec, "name", "") == _PUSHING_WORKER


def _say_once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        log.info("%s", text)
