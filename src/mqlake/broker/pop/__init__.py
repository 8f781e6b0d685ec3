"""Pop consumption: the broker hands out messages one by one and takes them back.

Upstream: `PopMessageProcessor`, `PopBufferMergeService`, `PopReviveService`.
"""
