"""Print the rows of a table, one JSON array a line, as a Spark with the format's own jars reads it.

`python read.py delta|iceberg TABLE JARS`. It needs nothing but PySpark.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
COLUMNS = "topic", "queueOffset", "unix_micros(storeTimestamp)", "cast(body as string)", "tags"


def iceberg(table: Path) -> dict[str, str]:
    """Return the settings for the catalog in a table's directory."""
    catalog = "spark.sql.catalog.default"
    return {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{table}/_mqlake/catalog.db",
        f"{catalog}.warehouse": str(table.parent),
    }


def main() -> None:
    """Read the table that the command line names."""
    form, table, jars = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    common = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.driver.memory": "512m",
        "spark.jars": jars,
    }
    builder = SparkSession.builder.master("local[1]")
    for name, value in {**common, **(DELTA if form == "delta" else iceberg(table))}.items():
        builder = builder.config(name, value)
    with builder.getOrCreate() as spark:
        if form == "delta":
            found = spark.read.format("delta").load(str(table))
        else:
            found = spark.table(f"default.mqlake.{table.name}")
        # The filter is one that readers use to leave out files and row groups.
        wanted = found.filter("topic = 'A' or queueOffset >= 30").selectExpr(*COLUMNS)
        for row in wanted.orderBy("topic", "queueOffset").collect():
            print(json.dumps(row))


if __name__ == "__main__":
    main()
