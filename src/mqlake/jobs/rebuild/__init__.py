"""Rebuild consume queues, index files and checkpoint of a store from its commit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.jobs.rebuild.job import RebuildReport as RebuildReport
    from mqlake.jobs.rebuild.job import rebuild as rebuild
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "RebuildReport": "job",
            "rebuild": "job",
        },
    )
