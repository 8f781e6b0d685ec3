"""What a broker tells a monitoring system (docs/metrics.md).

Upstream: `BrokerMetricsManager`, `DefaultStoreMetricsManager`.
"""
