"""RocketMQ's gRPC clients at mqlake's service and at RocketMQ's own proxy, in one run."""
