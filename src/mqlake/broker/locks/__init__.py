"""LOCK_BATCH_MQ, UNLOCK_BATCH_MQ: queues for one consumer of a group alone, to keep their order.

Upstream: `RebalanceLockManager`.
"""
