"""What the policies of a user decide about one resource (upstream: `AclAuthorizationHandler`).

Entries are asked in the order of how exactly they name the resource: its name, prefixes from the
longest to the shortest, all resources of its kind, all resources. The first one that covers the
action and the address decides. Upstream sorts all matching entries by the same rules and takes the
first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mqlake.auth.policies import Acl, Action, Decision, Entry, Policy
from mqlake.auth.resource import NamePattern, Resource, ResourceKind
from mqlake.auth.sources import Address, is_within

_MOST: Final = 1000
"""Decisions of one user that are remembered."""
_LONGEST: Final = 255
"""Characters of the names in them. Clients choose names, which may have megabytes."""
_ALL: Final = Resource(ResourceKind.ANY, "", NamePattern.ANY)


class _PolicyIndex:
    """The entries of one policy, found by name instead of one after the other."""

    __slots__ = ("_lengths", "_policy")

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        prefixes = {len(each.name) for each in policy if each.pattern is NamePattern.PREFIXED}
        self._lengths = sorted(prefixes, reverse=True)

    def decide(
        self, kind: ResourceKind, name: str, actions: frozenset[Action], source: Address | None
    ) -> Decision | None:
        for entry in self._covering(kind, name):
            is_from = not entry.networks or is_within(source, entry.networks)
            if is_from and entry.matches(actions):
                return entry.decision
        return None

    def _covering(self, kind: ResourceKind, name: str) -> Iterator[Entry]:
        policy = self._policy
        if (found := policy.get(Resource(kind, name, NamePattern.LITERAL))) is not None:
            yield found
        for length in self._lengths:
            if length > len(name):
                continue
            found = policy.get(Resource(kind, name[:length], NamePattern.PREFIXED))
            if found is not None:
                yield found
        for resource in (Resource(kind, "", NamePattern.ANY), _ALL):
            if (found := policy.get(resource)) is not None:
                yield found


class Decisions:
    """Decides by the policies of one user.

    Attributes:
        depends_on_source: whether what is decided depends on where a request comes from.
    """

    __slots__ = ("_custom", "_default", "_known", "depends_on_source")

    def __init__(self, acl: Acl) -> None:
        self._custom, self._default = _PolicyIndex(acl.custom), _PolicyIndex(acl.default)
        entries = (*acl.custom.values(), *acl.default.values())
        self.depends_on_source = any(entry.networks for entry in entries)
        self._known: dict[tuple[ResourceKind, str, frozenset[Action]], Decision | None] = {}

    def decide(
        self, kind: ResourceKind, name: str, actions: frozenset[Action], source: Address | None
    ) -> Decision | None:
        """Return what is decided about an action on a resource; None if no entry matches.

        Args:
            actions: of which one is needed.
            source: where the request comes from.
        """
        if self.depends_on_source or len(name) > _LONGEST:
            return self._decide(kind, name, actions, source)
        key = kind, name, actions
        if key in self._known:
            return self._known[key]
        if len(self._known) >= _MOST:
            self._known.clear()
        found = self._known[key] = self._decide(kind, name, actions, source)
        return found

    def _decide(
        self, kind: ResourceKind, name: str, actions: frozenset[Action], source: Address | None
    ) -> Decision | None:
        return self._custom.decide(kind, name, actions, source) or self._default.decide(
            kind, name, actions, source
        )
