"""Typed header fields (upstream: `CommandCustomHeader`).

On the wire every field is a string (`extFields`). Here it is what it stands for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, TypeVar

import msgspec

from mqlake.protocol.errors import HeaderError

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Header(msgspec.Struct, rename="camel", gc=False, kw_only=True):
    """Fields of one request or response, named in camelCase on the wire.

    A field without a default must be there. Those that are None are not sent.
    """


class TopicRequest(Header, kw_only=True):
    """Fields of requests about a queue that brokers forward (upstream: `TopicRequestHeader`).

    Attributes:
        lo: False: the queue is the broker's own, not a logic queue of a static topic; so requests
            are marked that a broker forwards. True in GET_TOPIC_CONFIG: with the mapping.
        bname: name of the broker that is asked.
    """

    lo: bool | None = None
    bname: str | None = None


H = TypeVar("H", bound=Header)


def from_fields(kind: type[H], fields: dict[str, str]) -> H:
    """Return the typed header that fields of strings stand for.

    Raises:
        HeaderError: a field is missing, or not of its type.
    """
    try:
        return msgspec.convert(fields, kind, strict=False)
    except msgspec.ValidationError as error:
        raise HeaderError(f"{kind.__name__}: {error}") from None


def from_json(kind: type[H], fields: msgspec.Raw) -> H:
    """Return the typed header in a JSON object; numbers and booleans may stand unquoted.

    Raises:
        HeaderError: a field is missing, or not of its type, or this is no strict JSON.
    """
    try:
        return _decoder(kind)(fields)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise HeaderError(f"{kind.__name__}: {error}") from None


def to_fields(header: Header) -> dict[str, str]:
    """Return the fields that are not None, as strings."""
    pairs = zip(_names(type(header)), msgspec.structs.astuple(header))  # noqa: B905 (as long)
    return {
        name: value if type(value) is str else _text(value)
        for name, value in pairs
        if value is not None
    }


def wire_name(kind: type[Header], field: str) -> str:
    """Return the name that a field has on the wire."""
    names = {each.name: each.encode_name for each in msgspec.structs.fields(kind)}
    return names[field]


def _text(value: object) -> str:
    if value is True:
        return "true"
    return "false" if value is False else str(value)


@cache
def _names(kind: type[Header]) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))


@cache
def _decoder(kind: type[H]) -> Callable[[msgspec.Raw], H]:
    return msgspec.json.Decoder(kind, strict=False).decode
