"""What a request, or an entry of a policy, is about (upstream: `Resource`)."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple, Self

_ANY = "*"


class ResourceKind(Enum):
    """Kinds of resources."""

    ANY = "Any"
    CLUSTER = "Cluster"
    NAMESPACE = "Namespace"
    TOPIC = "Topic"
    GROUP = "Group"


_KINDS = {kind.value.lower(): kind for kind in ResourceKind}


class NamePattern(Enum):
    """How the name of an entry's resource is compared with that of a request."""

    ANY = auto()
    LITERAL = auto()
    PREFIXED = auto()


class Resource(NamedTuple):
    """Resources of an entry: one, those with a prefix, all of a kind, or all.

    Attributes:
        name: the name or the prefix; "" for `NamePattern.ANY`.
    """

    kind: ResourceKind
    name: str
    pattern: NamePattern

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return what a text such as "Topic:orders", "Group:app-*" or "*" stands for.

        None if it is no resource. RocketMQ ignores what follows a `*` inside a name, which allows
        more than the text seems to say; here, such a text is no resource.
        """
        if text == _ANY:
            return cls(ResourceKind.ANY, "", NamePattern.ANY)
        kind, colon, name = text.partition(":")
        found = _KINDS.get(kind.lower())
        if found is None or not colon or not name:
            return None
        if name == _ANY:
            return cls(found, "", NamePattern.ANY)
        if _ANY in name[:-1]:
            return None
        if name.endswith(_ANY):
            return cls(found, name[:-1], NamePattern.PREFIXED)
        return cls(found, name, NamePattern.LITERAL)

    @property
    def text(self) -> str:
        """Return the text that `parse` reads."""
        if self.kind is ResourceKind.ANY:
            return _ANY
        if self.pattern is NamePattern.LITERAL:
            return f"{self.kind.value}:{self.name}"
        return f"{self.kind.value}:{self.name}{_ANY}"
