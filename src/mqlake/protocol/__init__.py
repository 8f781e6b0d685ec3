"""RocketMQ's remoting protocol as values: commands, headers, bodies, and names both sides know.

Nothing here opens a connection, and nothing needs NumPy. Page: docs/formats/remoting.md.
"""
