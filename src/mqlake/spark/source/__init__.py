"""The Spark data source "rocketmq" over store directories (docs/spark-source.md)."""
