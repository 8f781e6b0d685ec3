"""Tables about a store: topics, queues, groups, segments, damage (docs/spark-sql.md)."""
