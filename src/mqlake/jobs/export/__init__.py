"""Export the messages of a store to Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.jobs.export.job import ExportReport as ExportReport
    from mqlake.jobs.export.job import export as export
    from mqlake.jobs.export.selection import Selection as Selection
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "ExportReport": "job",
            "export": "job",
            "Selection": "selection",
        },
    )
