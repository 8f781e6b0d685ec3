"""Static topics: logic queues whose stretches are on several brokers (docs/static-topics.md)."""
