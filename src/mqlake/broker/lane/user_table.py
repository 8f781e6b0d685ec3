"""The users whose sends the lane serves, with what their signatures are checked with."""

from __future__ import annotations

from hashlib import sha1
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from mqlake.broker.lane.layout import (
    END_USER,
    FIRST_USER,
    IS_OPEN,
    KEY_SIZE,
    MOST_USERS,
    TEXT_SIZE,
    USER_NUMBERS,
    USER_SIZE,
)

if TYPE_CHECKING:
    from mqlake.dispatch.batch import Bytes, Longs

_NAME_AT: Final = 8
_BLOCK: Final = 64
"""Bytes of a block of SHA-1."""


class UserArrays(NamedTuple):
    """The arrays of the kernel.

    Attributes:
        numbers: i8[USER_NUMBERS]: see `layout`.
        names, name_sizes: u1[n], in rows of USER_SIZE; i8[n]: the name of each user.
        keys: u1[n], in rows of KEY_SIZE: see `enter_key`.
        text: u1[TEXT_SIZE], for the text that is signed.
        permissions: see `Permissions`.
    """

    numbers: Longs
    names: Bytes
    name_sizes: Longs
    keys: Bytes
    text: Bytes
    permissions: Bytes


class Permissions:
    """What each user in the table is known to be allowed: one row for each request.

    Attributes:
        array: u1[n, MOST_USERS]: 1, or 0 if that must be asked for. The users have the places that
            they have in the table of users.
    """

    def __init__(self, rows: int) -> None:
        self.array: Bytes = np.zeros((rows, MOST_USERS), np.uint8)
        self._end = 0

    def permit(self, row: int, user: int) -> None:
        """Note that a user, by its place, may make the requests of a row."""
        self._end = max(self._end, row + 1)
        self.array[row, user] = 1

    def forget(self) -> None:
        """Ask for each permission again."""
        self.array[: self._end] = 0
        self._end = 0


class UserTable:
    """Users by numbers, of which none is used twice. Until `open`, every send must be signed."""

    def __init__(self) -> None:
        self._numbers = np.zeros(USER_NUMBERS, np.int64)
        self._names: Bytes = np.zeros(MOST_USERS * USER_SIZE, np.uint8)
        self._sizes = np.zeros(MOST_USERS, np.int64)
        self._keys: Bytes = np.zeros(MOST_USERS * KEY_SIZE, np.uint8)
        self._text: Bytes = np.zeros(TEXT_SIZE, np.uint8)
        self._numbers[FIRST_USER] = self._numbers[END_USER] = 1

    def __len__(self) -> int:
        return int(self._numbers[END_USER] - self._numbers[FIRST_USER])

    def arrays(self, permissions: Permissions) -> UserArrays:
        """Return the arrays of the kernel."""
        return UserArrays(
            self._numbers, self._names, self._sizes, self._keys, self._text, permissions.array
        )

    def open(self) -> None:
        """Let sends be served without a signature."""
        self._numbers[IS_OPEN] = 1

    def place(self, number: int) -> int | None:
        """Return the place of a user in the table, None if it is not there."""
        place = number - int(self._numbers[FIRST_USER])
        return place if 0 <= place < len(self) else None

    def clear(self) -> None:
        """Forget all users, and their keys."""
        self._keys[:] = 0
        self._numbers[FIRST_USER] = self._numbers[END_USER]

    def add(self, name: str, password: str) -> int | None:
        """Add a user to the table, which has room; return the number. None for a name that the
        kernel cannot compare.
        """
        data, place = name.encode("utf-8", "replace"), len(self)
        if not data.isascii() or not 0 < len(data) <= USER_SIZE - _NAME_AT:
            return None
        # Imported late: without compiled kernels, there is no lane.
        from mqlake.broker.lane.compiled.signatures import enter_key

        at = place * USER_SIZE + _NAME_AT
        self._names[at : at + len(data)] = np.frombuffer(data, np.uint8)
        self._sizes[place] = len(data)
        enter_key(self._keys, place, _block(password))
        number = int(self._numbers[END_USER])
        self._numbers[END_USER] = number + 1
        return number


def _block(password: str) -> Bytes:
    """Return the key of an HMAC, as long as a block."""
    secret = password.encode("utf-8", "replace")
    if len(secret) > _BLOCK:
        secret = sha1(secret).digest()  # noqa: S324 (RocketMQ's)
    return np.frombuffer(bytearray(secret.ljust(_BLOCK, b"\0")), np.uint8)
