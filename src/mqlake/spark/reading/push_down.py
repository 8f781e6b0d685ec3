"""Whether the filters that Spark pushes down may narrow what is read."""

from __future__ import annotations

import sys

import pyspark

from mqlake.spark.reading.log import logger

log = logger()

_PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"

SAFE_RELEASES: frozenset[str] = frozenset()
"""Releases of Spark ("4.9") that keep pushed filters to their query.

Spark 4.1 to 4.3 keep what was planned with them beside the relation (`PythonDataSourceV2`), and use
it for whatever else is asked of the same DataFrame, whose rows then are missing. A worker cannot
ask Spark for that, and no attribute of PySpark says it. So a release is named here once
`tests/spark/source/test_push_down_fault.py` has seen that it answers such queries rightly.
"""

_said: set[str] = set()


def is_used(push_filters: str, otherwise: str) -> bool:
    """Say whether a reader is to take filters: by the option `pushFilters`, and where it is safe.

    `otherwise` is said where it is not to: what else narrows what is read.
    """
    if not _is_pushing():
        _say_once(
            "Spark hands no filters to the source: spark.sql.python.filterPushdown.enabled is "
            f"off, or the query has none; {otherwise}"
        )
        return False
    if push_filters == "true" or (push_filters == "auto" and release() in SAFE_RELEASES):
        return True
    _say_once(
        "filters are not used to narrow what is read: this Spark would use those of one query for "
        f"others on the same DataFrame (option pushFilters); {otherwise}"
    )
    return False


def release() -> str:
    """Return the release of Spark that runs, without the number of its corrections."""
    return ".".join(pyspark.__version__.split(".")[:2])


def _is_pushing() -> bool:
    """Say whether this process was started to push filters down, which only then is enabled.

    Spark does not tell a data source about its settings; but it runs different programs.
    """
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    return _PUSHING_WORKER in sys.modules or getattr(spec, "name", "") == _PUSHING_WORKER


def _say_once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        log.info("%s", text)
