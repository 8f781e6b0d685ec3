"""The gRPC service of RocketMQ's clients: calls become requests to brokers (docs/grpc.md).

Upstream: `org.apache.rocketmq.proxy`.
"""
