"""The schema of the batches that a reader hands to Spark."""

# pyright: basic
# Reason: pyarrow carries no types.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> Any:
    """Return the Arrow schema that Spark expects of batches, to the last flag."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")
