"""RocketMQ's own integration tests, run against mqlake's processes and against Java's brokers."""
