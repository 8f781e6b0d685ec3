"""Requests to a name server, one family in each file.

Upstream: `DefaultRequestProcessor`, `ClientRequestProcessor`.
"""
