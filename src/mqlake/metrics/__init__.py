"""Numbers about a running program, for Prometheus (docs/metrics.md)."""
