"""RocketMQ's remoting protocol: frames, commands, connections, server and client.

Nothing here knows what a broker or a name server does. Page: docs/formats/remoting.md.
"""
