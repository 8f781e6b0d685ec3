"""Who sends a request, and what they may do: users, signatures, policies.

Upstream: the module `auth` of RocketMQ 5 (ACL 2.0).
"""
