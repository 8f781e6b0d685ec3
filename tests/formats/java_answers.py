"""Answers of real Java code, from `data/`."""

from __future__ import annotations

import lzma
from pathlib import Path

DATA = Path(__file__).parent / "data"


def lines(name: str) -> list[list[str]]:
    """Return the words of each line of a compressed table; a line may begin with an empty word."""
    text = lzma.decompress((DATA / name).read_bytes()).decode("ascii")
    return [line.split(" ") for line in text.splitlines()]


def content(name: str) -> bytes:
    return (DATA / name).read_bytes()
