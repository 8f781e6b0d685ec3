"""Settings of sessions that run small queries once.

Compiling such a query takes longer than running it, and so do the 200 partitions that Spark has for
each aggregate, with files of state for each of them in a stream.
"""

from __future__ import annotations

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}
