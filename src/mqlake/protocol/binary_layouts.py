"""Find where the fields of similar binary headers are, once for all of them.

A client sends headers of the same fields in the same order, with values of mostly the same lengths.
If everything except the values equals an earlier header, the values are at the same positions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

MAX_SIZES: Final = 512
"""Sizes of headers that layouts are kept for."""
MAX_LAYOUTS: Final = 4
"""Layouts that are kept for one size."""
_MAX_SIZE: Final = 4096
"""Longest header in bytes that a layout is kept for."""
_MIN_FIELDS: Final = 2
"""`itemgetter` returns a tuple from two slices on."""


class _HeaderLayout(NamedTuple):
    """Where the fields of a header are, and the bytes around their values."""

    marks_of: Callable[[bytes], tuple[Any, ...]]
    marks: tuple[bytes, ...]
    values_of: Callable[[str], tuple[str, ...]]
    names: tuple[str, ...]


class Layouts:
    """The layouts of headers that were read last, without a remark in them.

    Attributes:
        by_size: what is kept.

    Args:
        start: bytes in front of the fields and their length.
    """

    def __init__(self, start: int) -> None:
        self._start = start
        self.by_size: dict[int, tuple[_HeaderLayout, ...]] = {}

    def read(self, data: bytes) -> dict[str, str] | None:
        """Return the fields of a header, or None if it looks like none that was learnt."""
        for layout in self.by_size.get(len(data), ()):
            if layout.marks_of(data) == layout.marks:
                values = layout.values_of(data.decode("latin-1"))
                # only ASCII is the same in UTF-8
                return dict(zip(layout.names, values)) if "".join(values).isascii() else None  # noqa: B905 (as long)
        return None

    def learn(self, data: bytes, fields: dict[str, str], spans: Sequence[slice]) -> None:
        """Keep where the fields of a header are: `spans` of their values, in their order."""
        size = len(data)
        is_plain = _MIN_FIELDS <= len(spans) == len(fields) and "".join(fields.values()).isascii()
        if size > _MAX_SIZE or not is_plain:
            return
        if len(self.by_size) >= MAX_SIZES and size not in self.by_size:
            self.by_size.clear()
        form, at = f">{self._start}x", self._start
        for span in spans:
            form += f"{span.start - at}s{span.stop - span.start}x"
            at = span.stop
        marks_of = struct.Struct(form).unpack
        layout = _HeaderLayout(marks_of, marks_of(data), itemgetter(*spans), tuple(fields))
        known = self.by_size.get(size, ())
        self.by_size[size] = (layout, *known[: MAX_LAYOUTS - 1])
