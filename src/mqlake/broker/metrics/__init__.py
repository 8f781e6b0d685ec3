"""What a broker reports to a monitoring system (docs/metrics.md).

Upstream: `BrokerMetricsManager`, `DefaultStoreMetricsManager`.
"""
