"""Clients of a cluster, mqlake's or RocketMQ's: what producers, consumers and tools stand on."""
