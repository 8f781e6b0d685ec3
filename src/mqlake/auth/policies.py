"""The permissions of a user: entries in two policies (upstream: `Acl`, `Policy`, `PolicyEntry`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple

from mqlake.auth.resource import Resource
from mqlake.auth.sources import Network


class Action(Enum):
    """What a request does, and what an entry allows or denies."""

    ALL = "All"
    ANY = "Any"
    PUB = "Pub"
    SUB = "Sub"
    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    GET = "Get"
    LIST = "List"


class Decision(Enum):
    """What an entry decides."""

    ALLOW = "Allow"
    DENY = "Deny"


class PolicyType(Enum):
    """Which entries are asked first: DEFAULT ones count only if no CUSTOM one matches."""

    CUSTOM = "Custom"
    DEFAULT = "Default"


class Entry(NamedTuple):
    """Allows or denies actions on resources, perhaps only from some addresses.

    Attributes:
        networks: from where; empty for everywhere.
    """

    resource: Resource
    actions: frozenset[Action]
    networks: tuple[Network, ...]
    decision: Decision

    def matches(self, actions: frozenset[Action]) -> bool:
        """Return whether the entry decides about a request that needs one of these actions."""
        return (
            Action.ANY in actions
            or Action.ALL in self.actions
            or not actions.isdisjoint(self.actions)
        )


Policy = Mapping[Resource, Entry]
"""The entries of one type by their resource: a resource has one entry."""
_NONE: Policy = MappingProxyType({})


class Acl(NamedTuple):
    """The two policies of a user."""

    custom: Policy = _NONE
    default: Policy = _NONE

    @property
    def entries(self) -> int:
        """Return how many entries there are."""
        return len(self.custom) + len(self.default)

    def of(self, kind: PolicyType) -> Policy:
        """Return the policy of a type."""
        return self.custom if kind is PolicyType.CUSTOM else self.default

    def merged(self, kind: PolicyType, entries: Iterable[Entry]) -> Acl:
        """Return an ACL with further entries, which replace those of the same resources."""
        return self._with(kind, {**self.of(kind), **{each.resource: each for each in entries}})

    def without(self, kind: PolicyType, resource: Resource) -> Acl:
        """Return an ACL without the entry for a resource."""
        left = {name: entry for name, entry in self.of(kind).items() if name != resource}
        return self._with(kind, left)

    def _with(self, kind: PolicyType, policy: Policy) -> Acl:
        if kind is PolicyType.CUSTOM:
            return self._replace(custom=policy)
        return self._replace(default=policy)
