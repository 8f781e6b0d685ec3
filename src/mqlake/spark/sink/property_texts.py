"""The properties of rows, encoded as in records (docs/formats/properties.md)."""

# pyright: basic, reportAttributeAccessIssue=false
# pyarrow has no types, and creates its functions when it is imported.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mqlake.errors import FormatError
from mqlake.formats import properties
from mqlake.formats.properties import CRC32, DELAY, INNER_NUM, KEYS, TAGS, UNIQ_KEY

_NAME_END, _PAIR_END = properties.NAME_VALUE_SEPARATOR, properties.PROPERTY_SEPARATOR
_COLUMNS = {KEYS: "keys", TAGS: "tags", UNIQ_KEY: "uniqKey", DELAY: "delayLevel"}


def property_texts(columns: dict[str, Any], count: int) -> tuple[Any, Any]:
    """Return (the properties of all rows as a binary array, bool[count] of rows that ask for a
    delay).

    A column overrides the property of the same name. Only the column `delayLevel` asks for a delay:
    messages that were delivered keep the property. The record CRC of messages that were read is
    left out.

    Raises:
        FormatError: a property could not be read back.
    """
    values = dict(_values(columns))
    delayed = np.zeros(count, bool)
    parts: list[Any] = []
    if "properties" in columns:
        pairs = _MapEntries(columns["properties"])
        pairs.check()
        pairs.drop(CRC32, np.ones(count, bool))
        for name, value in values.items():
            pairs.drop(name, _present(value))
        parts.append(pairs.texts())
    for name, value in values.items():
        present = _present(value)
        parts.append(_texts(name, value, present))
        if name == DELAY:
            delayed = present
    if not parts:
        return pa.array([b""] * count, pa.binary()), delayed
    return pc.binary_join_element_wise(*parts, "").cast(pa.binary()), delayed


def _values(columns: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, column in _COLUMNS.items():
        array = columns.get(column)
        if array is None:
            continue
        if column == "keys" and not pa.types.is_string(array.type):
            if array.values.null_count and array.flatten().null_count:
                raise FormatError("a key is null")
            array = pc.binary_join(array, properties.KEY_SEPARATOR)
        elif column == "delayLevel":
            array = pc.if_else(pc.greater(array, 0), array, None).cast(pa.string())
        if pc.any(pc.match_substring(array, _PAIR_END)).as_py():
            raise FormatError(
                f"column {column}: a text contains the character U+0002, which separates properties"
            )
        yield name, array


def _present(values: Any) -> Any:
    return pc.fill_null(pc.greater(pc.binary_length(values), 0), False).to_numpy(
        zero_copy_only=False
    )


def _texts(name: str, values: Any, present: Any) -> Any:
    pairs = pc.binary_join_element_wise(
        name, _NAME_END, values, _PAIR_END, "", null_handling="skip"
    )
    return pc.if_else(pa.array(present), pairs, "")


class _MapEntries:
    """The names and values of a map column, without those of null maps."""

    def __init__(self, maps: Any) -> None:
        offsets = maps.offsets.to_numpy()
        first, last = int(offsets[0]), int(offsets[-1])
        self._count = len(maps)
        self._rows = np.repeat(np.arange(self._count), np.diff(offsets))
        self._names = maps.keys.slice(first, last - first)
        self._values = maps.items.slice(first, last - first)
        if maps.null_count:
            self._keep(maps.is_valid().to_numpy(zero_copy_only=False)[self._rows])

    def check(self) -> None:
        """Raise FormatError if a pair could not be read back, or marks an inner batch."""
        if self._values.null_count:
            name = self._names[int(np.argmax(self._values.is_null()))].as_py()
            raise FormatError(f"property {name!r} is null")
        if not len(self._names):
            return
        wrong = (
            pc.equal(pc.binary_length(self._names), 0),
            pc.equal(pc.binary_length(self._values), 0),
            pc.match_substring(self._names, _NAME_END),
            pc.match_substring(self._names, _PAIR_END),
            pc.match_substring(self._values, _PAIR_END),
        )
        for bad in wrong:
            if pc.any(bad).as_py():
                at = pc.index(bad, True).as_py()
                name, value = self._names[at].as_py(), self._values[at].as_py()
                raise FormatError(f"property cannot be stored: {name!r} = {value[:200]!r}")
        if pc.any(pc.equal(self._names, INNER_NUM)).as_py():
            raise FormatError(f"property {INNER_NUM}: inner batches cannot be written")

    def drop(self, name: str, rows: Any) -> None:
        """Leave out the pairs of this name in these rows, bool[n]."""
        named = pc.equal(self._names, name)
        if pc.any(named).as_py():
            self._keep(~(named.to_numpy(zero_copy_only=False) & rows[self._rows]))

    def texts(self) -> Any:
        """Return the text of each row's pairs."""
        pairs = pc.binary_join_element_wise(self._names, _NAME_END, self._values, _PAIR_END, "")
        starts = np.zeros(self._count + 1, np.int32)
        np.cumsum(np.bincount(self._rows, minlength=self._count), out=starts[1:])
        return pc.binary_join(pa.ListArray.from_arrays(pa.array(starts), pairs), "")

    def _keep(self, which: Any) -> None:
        mask = pa.array(which)
        self._rows = self._rows[which]
        self._names, self._values = self._names.filter(mask), self._values.filter(mask)
