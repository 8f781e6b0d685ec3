"""The lane: one compiled loop that receives and answers the common requests of all connections.

It does nothing that the ordinary path would do otherwise: without this folder, all requests take
the ordinary path.
"""
