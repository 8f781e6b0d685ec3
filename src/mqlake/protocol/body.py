"""JSON bodies, in the dialect of fastjson."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from mqlake.errors import FormatError
from mqlake.formats import fastjson
from mqlake.formats.config import convert
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Body, Command
from mqlake.protocol.errors import BodyError, RemotingError

MAX_LENIENT: Final = 16 * 1024
"""Longest body in bytes that is read again when it is no strict JSON: that takes about a
millisecond for each KiB, in which nobody else is served."""
MAX_CONVERTED: Final = 64 * 1024
"""Longest body in bytes that is strict JSON and whose values are converted to the types of their
fields."""
MAX_LENIENT_ANSWER: Final = 4 * 1024 * 1024
"""The same of answers that a tool has asked for, which serves nobody else."""

MAX_QUOTED: Final = 1 << 20
"""Longest body in bytes whose integer keys are put in quotes: that takes about 40 ms."""
_INTEGER_KEY: Final = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)|([{,])(-?[0-9]+):', re.DOTALL)
"""A text, which is left as it is, or an integer key."""

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_plain = msgspec.json.Decoder().decode


def decode_body(kind: type[T], data: Body, max_lenient: int = MAX_LENIENT) -> T:
    """Return what a JSON body says, as `kind`: unknown fields are ignored, null is absent.

    Args:
        max_lenient: longest body in bytes that may be fastjson's dialect instead of strict JSON.

    Raises:
        BodyError: it is no such JSON.
    """
    try:
        return _decoder(kind)(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason: Exception = error
    try:
        if len(data) <= MAX_CONVERTED:
            return convert(_plain(data), kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, FormatError, RecursionError) as error:
        reason = error
    if len(data) <= max_lenient:
        try:
            return convert(fastjson.loads(bytes(data)), kind)
        except (FormatError, RecursionError) as error:
            reason = error
    raise BodyError(f"the body is not a {kind.__name__}: {reason}") from None


def decode_answer(kind: type[T], data: Body) -> T:
    """Return what the body of an answer says, as `decode_body` does; it may be long.

    Raises:
        BodyError: it is no such JSON.
    """
    return decode_body(kind, data, MAX_LENIENT_ANSWER)


def request_body(kind: type[T], request: Command, most: int, setting: str) -> T:
    """Return the content of a request's JSON body, which is not so long that decoding it would
    block an event loop.

    Args:
        most: the maximum size in bytes.
        setting: the name of the setting for it.

    Raises:
        BodyError: the body is not valid JSON of this kind.
        RemotingError: the body is too long.
    """
    check_size(request, most, setting)
    return decode_body(kind, request.body)


def check_size(request: Command, most: int, setting: str) -> None:
    """Refuse a request whose body is too long.

    Raises:
        RemotingError: the body is longer than `most` bytes.
    """
    size = len(request.body)
    if size > most:
        reason = f"the body has {size} bytes; the maximum is {most} ({setting})"
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)


def quoted_keys(data: bytes) -> bytes:
    """Put integer keys in quotes: fastjson writes those of a static topic's queues without."""
    return _INTEGER_KEY.sub(lambda found: found[0] if found[1] is None else _quoted(found), data)


def _quoted(found: re.Match[bytes]) -> bytes:
    return b'%b"%b":' % (found[1], found[2])


def encode_body(value: object) -> bytes:
    """Return standard JSON: integer keys are quoted. Fields that are UNSET are left out."""
    return _encode(value)


def encode_unquoted(value: object) -> bytes:
    """Return what fastjson writes by default: integer keys stand without quotes."""
    return fastjson.dumps(msgspec.to_builtins(value), pretty=False).encode()


@cache
def _decoder(kind: type[T]) -> Callable[[Any], T]:
    return msgspec.json.Decoder(kind, strict=False).decode
