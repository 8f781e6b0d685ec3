"""Brokers and proxies that are killed under official gRPC clients: no message may be lost."""
