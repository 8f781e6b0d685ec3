"""The columns of the source "rocketmq" as Spark's types, and the tables of docs/spark-source.md."""
