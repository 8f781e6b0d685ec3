"""The permission that a request requires (upstream: `Action`)."""

from __future__ import annotations

from enum import Flag, auto


class Permission(Flag):
    """What a request does to the topic, the group or the cluster that it names.

    Several, as in `PUBLISH | SUBSCRIBE`: whoever is allowed to do one of them may ask.
    """

    PUBLISH = auto()
    SUBSCRIBE = auto()
    READ = auto()
    LIST = auto()
    CREATE = auto()
    UPDATE = auto()
    DELETE = auto()
