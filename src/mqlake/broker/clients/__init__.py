"""The connected clients: producers and consumers by group, and their subscriptions.

Upstream: `ClientManageProcessor`, `ConsumerManager`, `ProducerManager`.
"""
