"""The gRPC protocol of RocketMQ 5's clients: calls over HTTP/2 and their messages."""
