"""The schema of the batches that a reader hands to Spark."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def arrow_schema(schema: StructType) -> Any:
    """Return exactly the Arrow schema that Spark expects of batches, including all flags."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")
