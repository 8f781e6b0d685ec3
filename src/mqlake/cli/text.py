"""Values as text for people: times, sizes, counts, and bytes of unknown content.

Text from a store may hold control characters, which a terminal would obey: `printable` shows them
as escapes.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
YEAR_9999 = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp()) * 1000
UNITS = ("KiB", "MiB", "GiB", "TiB")
HEX_BYTES = 32


def printable(text: str) -> str:
    """Return text with each character that is not printable as a backslash escape."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def local_time(milliseconds: int) -> str:
    """Return milliseconds since 1970 as ISO 8601 in local time; "-" for 0, which stands for no
    time.

    A value outside the range of dates is returned as a number.
    """
    if milliseconds == 0:
        return "-"
    if not 0 < milliseconds < YEAR_9999:
        return f"{milliseconds} ms"
    moment = (EPOCH + timedelta(milliseconds=milliseconds)).astimezone()
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")


def time_and_milliseconds(milliseconds: int) -> str:
    """Return a local time followed by the milliseconds that options accept."""
    return f"{local_time(milliseconds)}  ({milliseconds})"


def count(number: int, one: str, many: str | None = None) -> str:
    """Return "1 message", "1,234 messages", "2 entries"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(length: int) -> str:
    """Return a number of bytes in the largest unit in which it is at least 1."""
    power = min((length.bit_length() - 1) // 10, len(UNITS))
    if length < 1024:
        return count(length, "byte")
    return f"{length / 1024**power:,.1f} {UNITS[power - 1]}"


def rate(length: int, seconds: float) -> str:
    """Return bytes a second in MB (10^6 bytes), or in kB if there are few."""
    if seconds <= 0:
        return "-"
    found = length / seconds
    if found < 1e6:
        return f"{found / 1e3:,.0f} kB/s"
    return f"{found / 1e6:,.{1 if found < 1e7 else 0}f} MB/s"


def shortened(text: str, limit: int) -> str:
    """Return printable text of at most `limit` characters; "…" stands for the rest."""
    text = printable(text)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def preview(body: bytes, limit: int) -> str:
    """Return the beginning of a body on one line: text if it is UTF-8, otherwise hex.

    `limit` is in characters, and hex shows at most 32 bytes; "…" marks that there is more.
    """
    return printable(beginning(body, limit))


def beginning(body: bytes, limit: int) -> str:
    """Return the beginning of a body as `preview` does, with the line ends and tabs of text."""
    text = _readable(body[: 4 * limit + 3], cut=len(body) > 4 * limit + 3)
    if text is None:
        shown = body[: min(HEX_BYTES, limit // 2)]
        return f"0x{shown.hex()}{'…' if len(body) > len(shown) else ''}"
    more = len(text) > limit or len(body) > 4 * limit + 3
    return text[:limit] + ("…" if more else "")


def _readable(head: bytes, cut: bool) -> str | None:
    """Return bytes as text, or None if they are not text. With `cut`, the last character may be
    incomplete.
    """
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        if not cut or error.start < len(head) - 3:
            return None
        text = head[: error.start].decode()
    whole = all(character.isprintable() or character in "\t\r\n" for character in text)
    return text if whole else None
