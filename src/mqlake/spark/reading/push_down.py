"""Whether the filters that Spark pushes down may narrow what is read."""

from __future__ import annotations

import sys

from pyspark.sql.datasource import DataSourceReader

from mqlake.spark.reading.log import logger

log = logger()

_PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"

FORGETS_FILTERS = hasattr(DataSourceReader, "pushLimit")
"""Whether Spark keeps pushed filters to their query.

Spark 4.1 and 4.2 keep what was planned with them beside the relation (`PythonDataSourceV2`), and
use it for whatever else is asked of the same DataFrame. The release that can push limits does not.
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
    if push_filters == "true" or (push_filters == "auto" and FORGETS_FILTERS):
        return True
    _say_once(
        "filters are not used to narrow what is read: this Spark would use those of one query for "
        f"others on the same DataFrame (option pushFilters); {otherwise}"
    )
    return False


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
