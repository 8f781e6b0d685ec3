"""Offsets of queues and of consumer groups (upstream: `ConsumerManageProcessor`)."""
