"""Manage brokers and name servers with the everyday commands of RocketMQ's mqadmin."""

SUMMARY = """Manage brokers and name servers with mqadmin's commands and options.

\b
Examples:
  mqlake admin clusterList
  mqlake admin topicStatus -t Orders -n 127.0.0.1:9876
  mqlake admin consumerProgress -g orders-service --json
"""
