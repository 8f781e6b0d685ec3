"""Forms that a browser posts."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from mqlake.console.page_error import PageError

FORM_BYTES: Final = 64 << 10
"""The maximum size of an ordinary form: it is parsed in a millisecond."""
LARGE_BYTES: Final = 4 << 20
"""The maximum size of a form with a body or a schema."""
_SECONDS: Final = 10.0
"""Within which a form must arrive."""
_MOST_FIELDS: Final = 200
CSRF_FIELD: Final = "csrf"


class PostedForm:
    """The fields of a form."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs
        self._last = dict(pairs)

    def text(self, name: str, default: str = "") -> str:
        """Return the last value of a field."""
        return self._last.get(name, default)

    def required(self, name: str, label: str) -> str:
        """Return the value of a field without surrounding spaces.

        Raises:
            PageError: it is missing or empty.
        """
        if found := self.text(name).strip():
            return found
        raise PageError(f"{label} is missing", "Go back and fill in this field.")

    def number(self, name: str, label: str, least: int, most: int) -> int:
        """Return the value of a field as a number.

        Raises:
            PageError: it is no number, or out of range.
        """
        text = self.required(name, label)
        try:
            found = int(text)
        except ValueError:
            raise PageError(f"{label} is {text[:50]!r}, and must be a number") from None
        if not least <= found <= most:
            raise PageError(f"{label} is {found}, and must be from {least} to {most}")
        return found

    def every(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [value for key, value in self.pairs if key == name]

    def is_set(self, name: str) -> bool:
        """Return whether a check box is ticked."""
        return self.text(name) not in ("", "0", "false")


async def read_form(request: Request, most: int) -> PostedForm:
    """Read the form of a request. A large one is parsed in a thread.

    Raises:
        PageError: it is too large or too slow, or not the form of a page.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise PageError("This request is not the form of a page", status=415)
    try:
        async with asyncio.timeout(_SECONDS):
            body = await _body(request, most)
    except TimeoutError:
        raise PageError(f"The form did not arrive within {_SECONDS:.0f} s", status=408) from None
    try:
        if len(body) <= FORM_BYTES:
            return _parsed(body)
        return await asyncio.to_thread(_parsed, body)
    except ValueError:
        raise PageError("The form cannot be read", status=400) from None


async def _body(request: Request, most: int) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise PageError("The form is too large", f"It may have {most:,} bytes.", 413)
    return bytes(body)


def _parsed(body: bytes) -> PostedForm:
    pairs = parse_qsl(
        body.decode(), keep_blank_values=True, errors="replace", max_num_fields=_MOST_FIELDS
    )
    return PostedForm(pairs)
