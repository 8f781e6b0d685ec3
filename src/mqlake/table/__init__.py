"""Read a store directory as an Arrow table, without Spark (docs/arrow-table.md).

    import mqlake

    table = mqlake.open("/data/store", subscribe="orders", columns=["queueOffset", "keys"])
    for batch in table: ...       # pyarrow.RecordBatch
    table.to_polars()
    table.to_duckdb().filter("queueOffset > 100").fetchall()

Needs pyarrow, NumPy and Numba: `pip install 'mqlake[parquet]'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlake.table.log_table import LogTable as LogTable
    from mqlake.table.log_table import open as open  # noqa: A004 (users write mqlake.open)
else:
    from mqlake.exports import lazy_exports

    __getattr__, __dir__ = lazy_exports(__name__, {"LogTable": "log_table", "open": "log_table"})
