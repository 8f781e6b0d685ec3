"""Hash many index keys at once (`mqlake.formats.java_string.index_key_hash`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mqlake.dispatch.batch import Ints

_MAX_INT = 0x7FFFFFFF


def key_hashes(texts: Sequence[str]) -> Ints:
    """Return i4[n], the hash that index files keep of each text such as `topic#key`.

    For `mqlake.dispatch.derived.index_entries.lookup_many`. The hash of the units u is the sum of
    u[i] * 31^(n-1-i) modulo 2^32: a difference of running sums, which may wrap.
    """
    data = "".join(texts).encode("utf-16-le", "surrogatepass")
    units = np.frombuffer(data, "<u2").astype(np.uint32)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    if lengths.sum() != len(units):  # characters of two units
        sizes = (len(text.encode("utf-16-le", "surrogatepass")) for text in texts)
        lengths = np.fromiter(sizes, np.int64, len(texts)) // 2
    ends = np.cumsum(lengths)
    powers = np.full(int(lengths.max(initial=0)) + 1, 31, np.uint32)
    powers[0] = 1
    np.cumprod(powers, dtype=np.uint32, out=powers)
    exponents = np.repeat(ends, lengths) - 1 - np.arange(len(units))
    sums = np.zeros(len(units) + 1, np.uint32)
    np.cumsum(units * powers[exponents], dtype=np.uint32, out=sums[1:])
    values = np.abs((sums[ends] - sums[ends - lengths]).view(np.int32).astype(np.int64))
    return np.where(values <= _MAX_INT, values, 0).astype(np.int32)
