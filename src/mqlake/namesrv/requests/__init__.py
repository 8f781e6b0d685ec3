"""Requests to a name server, a family a file.

Upstream: `DefaultRequestProcessor`, `ClientRequestProcessor`.
"""
