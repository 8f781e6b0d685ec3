"""Roles of visitors."""

from __future__ import annotations

from enum import IntEnum


class ConsoleRole(IntEnum):
    """What a visitor may do. Each role may do what the previous ones may."""

    STRANGER = 0
    """Log in."""
    VIEWER = 1
    """See the cluster."""
    OPERATOR = 2
    """Also change it. The cluster's ACL decides about each request."""
    ADMIN = 3
    """Also use what has the rights of the console's own process: stores, SQL and jobs."""
