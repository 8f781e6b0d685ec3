"""From commit-log bytes to columns, and from columns to queue and index bytes (docs/dispatch.md).

The kernels exist twice: compiled by Numba (`compiled`), and as plain Python (`reference`) that says
what they mean. `kernel.load` chooses. `SegmentScan` yields a `Batch` a window; `group`,
`IndexFileBuilder` and `to_arrow` take batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.dispatch.arrow import to_arrow as to_arrow
    from mqlake.dispatch.batch import Batch as Batch
    from mqlake.dispatch.derived.index_entries import IndexFileBuilder as IndexFileBuilder
    from mqlake.dispatch.derived.queue_entries import group as group
    from mqlake.dispatch.gap import Gap as Gap
    from mqlake.dispatch.scan import SegmentScan as SegmentScan
    from mqlake.dispatch.scan import Want as Want
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "to_arrow": "arrow",
            "Batch": "batch",
            "Gap": "gap",
            "IndexFileBuilder": "derived.index_entries",
            "group": "derived.queue_entries",
            "SegmentScan": "scan",
            "Want": "scan",
        },
    )
