"""Apache RocketMQ's message store in Python.

table = mqlake.open("/data/store")  # the commit log as Arrow (docs/arrow-table.md)
"""

from mqlake.exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, {"open": "table"})

__version__ = "0.2.0"
