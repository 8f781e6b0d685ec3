"""Connections that speak RocketMQ's remoting protocol: a server, a client, and their limits.

Nothing here knows what a broker or a name server does. Page: docs/formats/remoting.md.
"""
