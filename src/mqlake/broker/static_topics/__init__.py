"""Static topics: logic queues whose stretches lie on several brokers (docs/static-topics.md)."""
