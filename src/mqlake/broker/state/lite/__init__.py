"""Lite topics: their queues, subscriptions, events, and what is popped (docs/lite-topics.md)."""
