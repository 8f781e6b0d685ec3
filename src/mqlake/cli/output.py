"""Stdout: JSON for programs, text for people. Commands write all their results with these
functions.

JSON is one object on one line, in UTF-8 whatever the locale. Control characters that JSON does not
escape are escaped, because a terminal may obey them. rich draws text, and is imported only
for text. On a terminal, text has colours and fits the width; otherwise it is plain, and lines are
not wrapped.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

PIPE_CLOSED = 128 + 13
UNFOLDED_WIDTH = 1 << 16
_CONTROL = re.compile(rb"\x7f|\xc2[\x80-\x9f]")
"""DEL and the C1 controls, in UTF-8."""


def write_json(value: object) -> None:
    """Write a value as one line of JSON."""
    import msgspec

    write(_CONTROL.sub(_escaped, msgspec.json.encode(value)) + b"\n")


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())


def timed(report: object, seconds: float) -> dict[str, object]:
    """Return the JSON object of a job's report, with the seconds the job took."""
    import msgspec

    return {**msgspec.to_builtins(report), "seconds": round(seconds, 3)}


def write_line(line: str) -> None:
    """Write one line of text."""
    write(encoded(line))


def encoded(line: str) -> bytes:
    """Return a line of text in characters that stdout can encode."""
    return f"{line}\n".encode(sys.stdout.encoding or "utf-8", "replace")


def draw(parts: Iterable[RenderableType]) -> None:
    """Draw tables and lines for a person, one below another."""
    from rich.console import Console
    from rich.table import Table

    terminal = sys.stdout.isatty()
    page = io.StringIO()
    console = Console(
        file=page,
        force_terminal=terminal,
        width=None if terminal else UNFOLDED_WIDTH,
        highlight=False,
        emoji=False,
        markup=False,
    )
    for number, part in enumerate(parts):
        if number and isinstance(part, Table):
            console.print()
        console.print(part)
    for line in page.getvalue().splitlines():
        write_line(line.rstrip())


def write(data: bytes) -> None:
    """Write bytes. If the reader of stdout has closed it, end the program quietly."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The interpreter flushes stdout once more when it exits; that goes to the null device.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(PIPE_CLOSED) from None
