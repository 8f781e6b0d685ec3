"""Lake tables that are kept from a log: Delta Lake, Iceberg and Parquet (docs/follow.md).

An engine runs the tasks; Spark does it by `mqlake.spark.follow`.
"""
