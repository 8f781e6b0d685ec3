"""A broker that stock RocketMQ clients use: what it answers, on one store (docs/broker.md)."""
