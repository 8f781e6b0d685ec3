"""Changes of attributes as text (upstream: `AttributeParser`)."""

from __future__ import annotations

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError

ADD, REMOVE = "+", "-"


def parse_changes(text: str | None) -> dict[str, str]:
    """Return the changes in "+name=value,-name": signed names with their values.

    Raises:
        RemotingError: the text is not of this form.
    """
    changes: dict[str, str] = {}
    for part in filter(None, (text or "").split(",")):
        name, equals, value = part.partition("=")
        if name[:1] not in (ADD, REMOVE) or (name[0] == ADD) != bool(equals):
            reason = f"attribute {part}: write +name=value or -name"
            raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)
        changes[name] = value
    return changes
