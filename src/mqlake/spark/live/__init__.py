"""The sink "rocketmq" into a running cluster, and the tables of docs/spark-live.md."""
