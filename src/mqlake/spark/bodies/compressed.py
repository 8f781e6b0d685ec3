"""Decompress bodies that producers compressed."""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlake.errors import FormatError, JobError
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.protocol.messages.body_compression import MAX_BODY, decompress
from mqlake.spark.bodies.decoded import DecodedBody
from mqlake.spark.bodies.rows import arrow_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SYS_FLAG = "sysFlag"
MOST_OF_A_BATCH = 1 << 30
"""Maximum bytes of the decompressed bodies of one Arrow batch."""


def decompressed(frame: DataFrame, source: str) -> DecodedBody:
    """Return the bodies of a column, decompressed if the column `sysFlag` says that they are
    compressed.

    Only compressed bodies leave the JVM for this.
    """
    from pyspark.sql import functions as sql

    body = sql.col(source)
    if SYS_FLAG not in frame.columns:
        return DecodedBody(body, sql.lit(None).cast("string"))
    flag = sql.col(SYS_FLAG)
    is_compressed = flag.bitwiseAND(COMPRESSED) != 0

    def decompress_batch(bodies: Any, flags: Any) -> Any:
        return decompress_all(bodies, flags)

    found = arrow_function(decompress_batch, "value binary, fault string")(
        sql.when(is_compressed, body), flag
    )
    return DecodedBody(sql.when(is_compressed, found["value"]).otherwise(body), found["fault"])


def decompress_all(bodies: Any, flags: Any, most: int = MOST_OF_A_BATCH) -> Any:
    """Return the values and faults of Arrow arrays of bodies and system flags.

    Raises:
        JobError: the decompressed bodies have more than `most` bytes.
    """
    import pyarrow as pa

    values: list[bytes | None] = []
    faults: list[str | None] = []
    left = most
    for body, flag in zip(bodies.to_pylist(), flags.to_pylist(), strict=True):
        value, fault = None, None
        if body is not None:
            try:
                value = decompress(body, flag, MAX_BODY)
            except FormatError as error:
                fault = str(error)
        left -= len(value or b"")
        if left < 0:
            raise JobError(
                f"decompressed bodies of {len(bodies)} messages have more than {most} bytes; set "
                "spark.sql.execution.arrow.maxRecordsPerBatch to fewer messages"
            )
        values.append(value)
        faults.append(fault)
    arrays = [pa.array(values, pa.binary()), pa.array(faults, pa.string())]
    return pa.StructArray.from_arrays(arrays, ["value", "fault"])
