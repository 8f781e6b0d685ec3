"""What somebody must be allowed to do for a request to be served (upstream: `Action`)."""

from __future__ import annotations

from enum import Enum


class Permission(Enum):
    """What a request does to the topic, the group or the cluster that it names."""

    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    PUBLISH_OR_SUBSCRIBE = "publish or subscribe"
    READ = "read"
    LIST = "list"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
