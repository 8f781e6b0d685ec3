"""Streams between brokers and Delta Lake on a Spark cluster, while servers are killed."""
