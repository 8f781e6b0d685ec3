"""Decoders in Python: functions that Spark's workers call with bodies, and that return Arrow
structs.
"""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from mqlake.errors import FormatError
from mqlake.spark.bodies.decoded import DecodedBody

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import StructType

_VALUE, _FAULT = "value", "fault"
_REASON_LENGTH = 300


class Recipe(Protocol):
    """The values from which a worker creates its decoder; they can be pickled and compared."""

    def columns(self) -> StructType:
        """Return the columns of a decoded body; raises FormatError."""
        ...

    def decoder(self) -> Callable[[bytes], dict[str, Any] | None]:
        """Return the decoder of a body; it raises FormatError for a malformed body."""
        ...


def decoded(body: Column, recipe: Recipe) -> DecodedBody:
    """Return the decoded bodies of a binary column."""
    from pyspark.sql.types import StringType, StructField, StructType

    columns = recipe.columns()
    found = StructType([StructField(_VALUE, columns), StructField(_FAULT, StringType())])

    def decode(bodies: Any) -> Any:
        return decode_all(bodies, recipe, columns)

    both = arrow_function(decode, found)(body)
    return DecodedBody(both[_VALUE], both[_FAULT])


def arrow_function(function: Callable[..., Any], returns: StructType | str) -> Any:
    """Return a function of columns that calls `function` with Arrow arrays in Python workers."""
    import inspect

    import pyarrow as pa
    from pyspark.sql import functions as sql

    # Spark reads from the annotations how to call a function; in this module they are strings.
    names = [*inspect.signature(function).parameters, "return"]
    function.__annotations__ = dict.fromkeys(names, pa.Array)
    arrow_udf: Any = sql.arrow_udf
    return arrow_udf(function, returns)


def decode_all(bodies: Any, recipe: Recipe, columns: StructType) -> Any:
    """Return the values and faults of an Arrow array of bodies, as a struct array."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_type

    decode = recipe.decoder()
    values: list[Any] = []
    faults: list[str | None] = []
    for body in bodies.to_pylist():
        value, fault = None, None
        if body is not None:
            try:
                value = decode(body)
            except FormatError as error:
                fault = str(error)[:_REASON_LENGTH]
        values.append(value)
        faults.append(fault)
    made = pa.array(values, to_arrow_type(columns, timezone="UTC"))
    return pa.StructArray.from_arrays([made, pa.array(faults, pa.string())], [_VALUE, _FAULT])
