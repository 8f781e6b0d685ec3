"""The lane: one compiled loop that receives, puts and answers the common sends of all connections.

It does nothing that the ordinary path would do otherwise: without this folder, all requests take
the ordinary path.
"""
