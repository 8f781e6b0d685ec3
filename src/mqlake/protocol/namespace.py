"""Namespaces: a prefix of the names of topics and groups, which programs do not see.

Upstream: `NamespaceUtil`. The topic `orders` of the namespace `shop` is `shop%orders` on the
cluster, and the retry topic of its group `billing` is `%RETRY%shop%billing`.
"""

from __future__ import annotations

import msgspec

from mqlake.formats.topic_names import DLQ_PREFIX, RETRY_PREFIX
from mqlake.protocol.naming import SYSTEM_GROUP_PREFIX, SYSTEM_PREFIX, SYSTEM_TOPICS

_SEPARATOR = "%"


class Namespace(msgspec.Struct, frozen=True):
    """A namespace; without a name it changes nothing."""

    name: str = ""

    def wrap(self, resource: str) -> str:
        """Return the name of a topic or a group as it is on the cluster."""
        prefix, rest = _parts(resource)
        if not self.name or not rest or _is_system(resource) or self._has(rest):
            return resource
        return f"{prefix}{self.name}{_SEPARATOR}{rest}"

    def unwrap(self, resource: str) -> str:
        """Return the name of a topic or a group as programs see it."""
        prefix, rest = _parts(resource)
        if not self.name or _is_system(resource) or not self._has(rest):
            return resource
        return prefix + rest[len(self.name) + len(_SEPARATOR) :]

    def _has(self, rest: str) -> bool:
        return rest.startswith(self.name + _SEPARATOR)


def _parts(resource: str) -> tuple[str, str]:
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if resource.startswith(prefix):
            return prefix, resource[len(prefix) :]
    return "", resource


def _is_system(resource: str) -> bool:
    return resource in SYSTEM_TOPICS or resource.startswith((SYSTEM_PREFIX, SYSTEM_GROUP_PREFIX))
