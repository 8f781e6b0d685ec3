"""Decompress the bodies of Arrow batches.

The bit COMPRESSED of `sysFlag` says of each row whether its body is compressed. It is cleared when
the body is decompressed. The bits that name the codec stay.
"""

# pyright: basic
# pyarrow has no types.

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from mqlake.errors import FormatError
from mqlake.formats.sys_flag import COMPRESSED
from mqlake.protocol.messages.body_compression import MAX_BODY, MissingCodecError, decompress

compute: Any = importlib.import_module("pyarrow.compute")  # Its functions are created at run time.

MOST_BYTES = MAX_BODY
"""Bytes of decompressed bodies after which a batch is divided; one body may have as many."""

BODY, SYS_FLAG = "body", "sysFlag"


class StoredBodies:
    """Counts the bodies that stay as stored because they cannot be decompressed.

    Attributes:
        count: the number of them.
        first: what is wrong with the first one; "" without one.
    """

    def __init__(self) -> None:
        self.count = 0
        self.first = ""

    def add(self, reason: str) -> None:
        """Count one."""
        self.count += 1
        self.first = self.first or reason

    def report(self, warn: Callable[[str], None]) -> None:
        """Pass a text about them to a function, if there are any."""
        if self.count:
            bodies = "1 body" if self.count == 1 else f"{self.count:,} bodies"
            warn(
                f"{bodies} cannot be decompressed and stay as stored (sysFlag says that a body is "
                f"compressed); the first: {self.first}"
            )


def decompressed(made: Any, stored: StoredBodies, most: int = MOST_BYTES) -> Iterator[Any]:
    """Yield a `pyarrow.RecordBatch` with decompressed bodies, in parts if it becomes too large.

    A body that is damaged, or has more than MAX_BODY bytes, stays as it is, and so does its flag.

    Args:
        made: has the columns `body` and `sysFlag`; rows without one of them stay as they are.
        most: bytes of decompressed bodies in a part. A part has more only if a single body has.

    Raises:
        FormatError: the package of a codec is missing.
    """
    flags = compute.fill_null(made.column(SYS_FLAG), 0).to_numpy()
    bodies = made.column(BODY)
    start, size = 0, 0
    plain: dict[int, bytes] = {}
    for row in np.flatnonzero(flags & COMPRESSED).tolist():
        body = bodies[row].as_py()
        if not body:
            continue
        try:
            value = decompress(body, int(flags[row]))
        except MissingCodecError as error:
            raise FormatError(f"{error}, or set the option decompress to false") from None
        except FormatError as error:
            stored.add(_where(made, row) + str(error))
            continue
        if plain and size + len(value) > most:
            yield _with_bodies(made, start, row, plain)
            start, size, plain = row, 0, {}
        plain[row] = value
        size += len(value)
    yield _with_bodies(made, start, made.num_rows, plain)


def _with_bodies(made: Any, start: int, end: int, plain: dict[int, bytes]) -> Any:
    """Return rows [start, end), some of them with other bodies."""
    part = made.slice(start, end - start)
    if not plain:
        return part
    mask = np.zeros(end - start, np.bool_)
    mask[[row - start for row in plain]] = True
    is_plain = pa.array(mask)
    kind = part.schema.field(BODY).type
    bodies = compute.replace_with_mask(
        part.column(BODY), is_plain, pa.array(list(plain.values()), kind)
    )
    flags = part.column(SYS_FLAG)
    cleared = compute.bit_wise_and(flags, pa.scalar(~COMPRESSED, flags.type))
    flags = compute.if_else(is_plain, cleared, flags)
    return _replaced(_replaced(part, BODY, bodies), SYS_FLAG, flags)


def _replaced(made: Any, name: str, column: Any) -> Any:
    number = made.schema.get_field_index(name)
    return made.set_column(number, made.schema.field(number), column)


def _where(made: Any, row: int) -> str:
    """Return which message a row is, as far as the columns say."""
    for name in ("physicalOffset", "queueOffset"):
        number = made.schema.get_field_index(name)
        if number >= 0:
            return f"{name} {made.column(number)[row].as_py()}: "
    return ""
