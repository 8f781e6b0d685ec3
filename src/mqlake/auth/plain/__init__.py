"""RocketMQ's ACL 1.0: accounts, white lists and permissions in files that the broker watches.

Upstream: `PlainAccessValidator` and `PlainPermissionManager` of RocketMQ 4.9.8, whose decisions
these are.
"""
