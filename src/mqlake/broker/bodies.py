"""Decode the bodies of requests: none is so long that decoding would block the event loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from mqlake.broker.settings import BrokerSettings
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.connection import LONGEST_ANSWER

T = TypeVar("T")

MAX_LENIENT: Final = 16_384
"""Maximum length in bytes of a body that may be other than strict JSON: Python code parses
fastjson's dialect.
"""


_JOINED: Final = 512


class Members:
    """The members of a list or table in an answer, encoded. They fit into one frame.

    Iterating yields texts of one or more members, separated by commas: many are joined as they
    come, so that joining the rest is little work.

    Attributes:
        size: of the members, in bytes.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._last: list[bytes] = []
        self._count = self.size = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces
        if self._last:
            yield b",".join(self._last)

    def append(self, member: bytes) -> None:
        """Append a member.

        Raises:
            RemotingError: clients would not read so long an answer.
        """
        self.size += len(member) + 1
        if self.size > LONGEST_ANSWER:
            raise RemotingError(
                ResponseCode.SYSTEM_ERROR,
                f"the answer would have more than {LONGEST_ANSWER} bytes, which no client reads:"
                " ask for less, such as a page, one topic or one group",
            )
        self._count += 1
        self._last.append(member)
        if len(self._last) >= _JOINED:
            self._pieces.append(b",".join(self._last))
            self._last.clear()


def request_body(kind: type[T], request: Command, most: int, setting: str) -> T:
    """Return the content of a request's JSON body.

    Args:
        most: the maximum size in bytes.
        setting: the name of the setting for it.

    Raises:
        BodyError: the body is not valid JSON of this kind.
        RemotingError: the body is too long.
    """
    check_size(request, most, setting)
    return decode_body(kind, request.body, MAX_LENIENT)


def check_size(request: Command, most: int, setting: str) -> None:
    """Refuse a request whose body is too long.

    Raises:
        RemotingError: the body is longer than `most` bytes.
    """
    size = len(request.body)
    if size > most:
        reason = f"the body has {size} bytes; the maximum is {most} ({setting})"
        raise RemotingError(ResponseCode.INVALID_PARAMETER, reason)


def admin_body(kind: type[T], request: Command, settings: BrokerSettings) -> T:
    """Return the content of a JSON body of an administrative request.

    Raises:
        BodyError: the body is not valid JSON of this kind.
        RemotingError: the body is longer than `maxAdminBodySize`.
    """
    return request_body(kind, request, settings.max_admin_body_size, "maxAdminBodySize")
