"""LOCK_BATCH_MQ, UNLOCK_BATCH_MQ: queues that one consumer of a group locks, to keep their order.

Upstream: `RebalanceLockManager`.
"""
