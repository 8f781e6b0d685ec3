"""The Huffman code of HTTP/2's headers (RFC 7541, appendix B).

The code is canonical: codes of one length follow each other in the order of their symbols, shorter
ones first. So the lengths define the code.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

_LENGTHS: Final = """
    13 23 28 28 28 28 28 28 28 24 30 28 28 30 28 28 28 28 28 28 28 28 30 28 28 28 28 28 28 28 28 28
    6 10 10 12 13 6 8 11 10 10 8 11 8 6 6 6 5 5 5 6 6 6 6 6 6 6 7 8 15 6 12 10
    13 6 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 8 7 8 13 19 13 14 6
    15 5 6 5 6 5 6 6 6 5 7 7 6 6 6 5 6 7 6 5 5 6 7 7 7 7 7 15 11 14 13 28
    20 22 20 20 22 22 22 23 22 23 23 23 23 23 24 23 24 24 22 23 24 23 23 23 23 21 22 23 22 23 23 24
    22 21 20 22 22 23 23 21 23 22 22 24 21 22 23 23 21 21 22 21 23 22 23 23 20 22 22 22 23 22 22 23
    26 26 20 19 22 23 22 25 26 26 26 27 27 26 24 25 19 21 26 27 27 26 27 24 21 21 26 26 28 27 27 27
    20 24 20 21 22 21 21 23 22 22 25 25 24 24 26 23 26 27 26 26 27 27 27 27 27 28 27 27 27 27 27 26
    30
"""
_END: Final = 256
"""The symbol of which the padding is a part."""
_MOST_PADDING: Final = 7
_KEPT: Final = 4096
_LONGEST_KEPT: Final = 256


class HuffmanError(ValueError):
    """Bytes that are not the code of any text."""


def codes() -> dict[int, tuple[int, int]]:
    """Return the code of each symbol, and its length in bits."""
    lengths = [int(length) for length in _LENGTHS.split()]
    ordered = sorted(range(len(lengths)), key=lambda symbol: (lengths[symbol], symbol))
    code, found = 0, {ordered[0]: (0, lengths[ordered[0]])}
    for before, symbol in pairwise(ordered):
        code = (code + 1) << (lengths[symbol] - lengths[before])
        found[symbol] = (code, lengths[symbol])
    return found


class _Tree:
    """The code as a tree; its nodes are numbered, the root is 0."""

    def __init__(self) -> None:
        self.children: list[list[int]] = [[0, 0]]
        self.symbols: dict[int, int] = {}
        self.paddings = {0}
        """Nodes at which a text may end: the root, and those that only ones lead to."""
        for symbol, (code, length) in codes().items():
            node = 0
            for bit in f"{code:0{length}b}":
                if not self.children[node][int(bit)]:
                    self.children[node][int(bit)] = len(self.children)
                    self.children.append([0, 0])
                node = self.children[node][int(bit)]
            self.symbols[node] = symbol
        node = 0
        for _ in range(_MOST_PADDING):
            node = self.children[node][1]
            self.paddings.add(node)


_TREE: Final = _Tree()
_STEPS: Final[dict[int, tuple[int, bytes]]] = {}
"""For a node << 8 | a byte: the node after it, << 8, and the symbols that the byte completes.

It is filled as needed; at most 65,536 entries exist.
"""
_DECODED: Final[dict[bytes, bytes]] = {}
"""Texts that were decoded lately: most of them come again with the next call."""


def decode(data: bytes) -> bytes:
    """Return the text of a code.

    Raises:
        HuffmanError: it is not the code of a text.
    """
    found = _DECODED.get(data)
    if found is None:
        found = _decode(data)
        if len(data) <= _LONGEST_KEPT:
            if len(_DECODED) >= _KEPT:
                _DECODED.clear()
            _DECODED[data] = found
    return found


def _decode(data: bytes) -> bytes:
    node, parts, steps = 0, list[bytes](), _STEPS
    for byte in data:
        step = steps.get(node + byte)
        if step is None:
            step = steps[node + byte] = _step(node >> 8, byte)
        node = step[0]
        parts.append(step[1])
    if node >> 8 not in _TREE.paddings:
        raise HuffmanError("its padding is wrong")
    return b"".join(parts)


def _step(node: int, byte: int) -> tuple[int, bytes]:
    symbols = bytearray()
    for bit in f"{byte:08b}":
        node = _TREE.children[node][int(bit)]
        if node in _TREE.symbols:
            symbol, node = _TREE.symbols[node], 0
            if symbol == _END:
                raise HuffmanError("it contains the symbol for the end of a string")
            symbols.append(symbol)
    return node << 8, bytes(symbols)
