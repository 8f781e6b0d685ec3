"""Who is connected: producers and consumers by group, and what they subscribe to.

Upstream: `ClientManageProcessor`, `ConsumerManager`, `ProducerManager`.
"""
