"""Rebuild consume queues, index files and checkpoint of a store from its commit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.jobs.rebuild.job import rebuild as rebuild
    from mqlake.jobs.rebuild.report import RebuildReport as RebuildReport
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "RebuildReport": "report",
            "rebuild": "job",
        },
    )
