"""Rebuild, verify, export and convert as pure tasks over splits of the log, for any engine.

Each job is a package with a function of its name (docs/rebuild.md). All of them run on an `Engine`:
`LocalEngine` runs tasks on threads; `mqlake.spark` has the engines for Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.jobs.engine import Engine as Engine
    from mqlake.jobs.local import LocalEngine as LocalEngine
    from mqlake.jobs.local import Progress as Progress
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "Engine": "engine",
            "LocalEngine": "local",
            "Progress": "local",
        },
    )
