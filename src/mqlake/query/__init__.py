"""Queries over stores, clusters and Kafka logs: positions, plans, and the rows of tasks as Arrow.

An engine runs them: Spark by `mqlake.spark`, threads of one process by `mqlake.table`.
"""
