"""QUERY_MESSAGE, VIEW_MESSAGE_BY_ID: find messages by key, unique key, tag or id.

Upstream: `QueryMessageProcessor`.
"""
