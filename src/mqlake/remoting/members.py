"""The members of a list or table in an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.errors import RemotingError
from mqlake.remoting.connection import LONGEST_ANSWER

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
