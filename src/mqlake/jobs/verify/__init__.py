"""Verify a store's commit log, and its derived files against the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.jobs.verify.job import VerifyReport as VerifyReport
    from mqlake.jobs.verify.job import verify as verify
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "VerifyReport": "job",
            "verify": "job",
        },
    )
