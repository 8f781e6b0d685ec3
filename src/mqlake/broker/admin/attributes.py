"""Changes of the attributes of topics and groups (upstream: `AttributeUtil`, `AttributeParser`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

_ADD, _REMOVE = "+", "-"

TOPIC_ATTRIBUTES: Final[Mapping[str, frozenset[str]]] = {
    "message.type": frozenset(
        ("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED", "PRIORITY")
    ),
    "queue.type": frozenset(("SimpleCQ",)),
    "cleanup.policy": frozenset(("DELETE",)),
}
"""Which attributes a topic may have here, with which values: those that change no format."""


def parse_changes(text: str | None) -> dict[str, str]:
    """Return the changes in "+name=value,-name": signed names with their values.

    Raises:
        RemotingError: the text is not of this form.
    """
    changes: dict[str, str] = {}
    for part in filter(None, (text or "").split(",")):
        name, equals, value = part.partition("=")
        if name[:1] not in (_ADD, _REMOVE) or (name[0] == _ADD) != bool(equals):
            raise _refused(f"attribute {part}: +name=value or -name is wanted")
        changes[name] = value
    return changes


def changed(
    attributes: Mapping[str, str],
    changes: Mapping[str, str],
    known: Mapping[str, frozenset[str]],
) -> dict[str, str]:
    """Return attributes after changes.

    Raises:
        RemotingError: an attribute that is not known, or a value that it cannot have.
    """
    result = dict(attributes)
    for signed, value in changes.items():
        sign, name = signed[:1], signed[1:]
        if name not in known or sign not in (_ADD, _REMOVE):
            raise _refused(f"attribute {signed} is not supported")
        if sign == _REMOVE:
            result.pop(name, None)
            continue
        if value not in known[name]:
            wanted = ", ".join(sorted(known[name]))
            raise _refused(f"attribute {name}: {value} is not supported, only {wanted}")
        result[name] = value
    return result


def _refused(reason: str) -> RemotingError:
    return RemotingError(ResponseCode.INVALID_PARAMETER, reason)
