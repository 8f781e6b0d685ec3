"""Read a lake table that `mqlake follow` writes, and the log after it, as one
(docs/union-read.md).
"""
