"""The worked examples of the format pages: real bytes with what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.formats.golden_log import golden

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "formats"

_BLOCK = re.compile(r"^```hex\n(\S+) at byte (\d+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"((?:[0-9a-f]{2} )*[0-9a-f]{2})?(?: {2,}(\S.*))?")


@dataclass
class HexBlock:
    """One example: where its bytes are, the bytes, and the values that the page says they have."""

    source: str
    at: int
    data: bytes = b""
    values: dict[str, str] = field(default_factory=dict)

    def real_bytes(self) -> bytes:
        """Return what the named file has there."""
        path = ROOT / self.source
        if not self.source.startswith("tests/"):
            name, _, inside = self.source.partition("/")
            path = golden(name).path / inside
        with path.open("rb") as file:
            file.seek(self.at)
            return file.read(len(self.data))


def hex_blocks(page: str) -> list[HexBlock]:
    """Return the examples of a page, in order."""
    blocks: list[HexBlock] = []
    for source, at, lines in _BLOCK.findall((PAGES / page).read_text(encoding="utf-8")):
        block = HexBlock(source, int(at))
        for line in lines.splitlines():
            match = _LINE.fullmatch(line)
            assert match, f"{page}: not a line of an example: {line!r}"
            block.data += bytes.fromhex(match[1] or "")
            name, separator, value = (match[2] or "").partition(" = ")
            if separator:
                block.values[name] = value
        blocks.append(block)
    return blocks
