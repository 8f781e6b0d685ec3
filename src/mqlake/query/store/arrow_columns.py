"""The Arrow schema of the columns: the same as Spark's of the source's columns."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from mqlake.dispatch.arrow import FIELDS
from mqlake.query.store.columns import BROKER_NAME, NULLABLE

_OTHER = {
    BROKER_NAME: pa.string(),
    "keys": pa.list_(pa.field("element", pa.string())),  # The name is written to Parquet files.
}
_TIME = pa.timestamp("us", tz="UTC")


def arrow_schema(columns: Iterable[str]) -> Any:
    """Return the `pyarrow.Schema` of columns; times are in microseconds, as in Spark."""
    return pa.schema(
        [pa.field(name, _type_of(name), nullable=name in NULLABLE) for name in columns]
    )


def _type_of(name: str) -> Any:
    if name in _OTHER:
        return _OTHER[name]
    found = FIELDS[name].type
    return _TIME if pa.types.is_timestamp(found) else found
