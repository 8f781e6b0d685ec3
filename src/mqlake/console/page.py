"""Renders pages: Jinja2 templates, in which every value is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from mqlake import __version__
from mqlake.console.access.roles import ConsoleRole
from mqlake.console.cluster.aged import noted_old_values
from mqlake.console.state import console_of, session_of

PAGE_SIZE: Final = 100
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


class Listing(NamedTuple):
    """One page of a list that is filtered and paged on the server.

    Attributes:
        items: what this page shows.
        total: how many there are on all pages.
        number: of this page, from 1.
        pages: how many pages there are.
        parameter: of the address, which has the number.
    """

    items: list[Any]
    total: int
    number: int
    pages: int
    parameter: str = "page"


def listing(
    request: Request, items: Sequence[Any], size: int = PAGE_SIZE, parameter: str = "page"
) -> Listing:
    """Return the page that a parameter of a request asks for."""
    text = request.query_params.get(parameter, "1")
    pages = max(1, -(-len(items) // size))
    number = min(int(text), pages) if text.isascii() and text.isdigit() and len(text) < 9 else 1
    number = max(1, number)
    shown = list(items[(number - 1) * size : number * size])
    return Listing(shown, len(items), number, pages, parameter)


def bytes_text(count: float) -> str:
    """Return a number of bytes for people, such as "1.5 GiB"."""
    rest, unit = float(count), 0
    while abs(rest) >= 1024 and unit < len(_UNITS) - 1:
        rest, unit = rest / 1024, unit + 1
    return f"{rest:.0f} {_UNITS[0]}" if unit == 0 else f"{rest:.1f} {_UNITS[unit]}"


def number_text(count: float) -> str:
    """Return a number with separators between thousands."""
    return f"{count:,}" if isinstance(count, int) else f"{count:,.1f}"


def counted(count: int, word: str) -> str:
    """Return a number with its noun, such as "1 segment" or "2,000 segments"."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def noun(count: int, word: str) -> str:
    """Return the noun that follows a number which is shown by itself."""
    return word if count == 1 else f"{word}s"


def duration_text(milliseconds: float) -> str:
    """Return a duration for people, in its two largest units, such as "2 h 5 min"."""
    rest = max(0, int(milliseconds)) // 1000
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    parts: list[str] = []
    for name, size in units:
        if rest >= size or (name == "s" and not parts):
            parts.append(f"{rest // size} {name}")
            rest %= size
        elif parts:
            break
    return " ".join(parts[:2])


def iso_time(milliseconds: int) -> str:
    """Return a time in UTC, as an HTML `time` element contains it; empty for none."""
    from datetime import UTC, datetime

    try:
        at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"


def utc_text(milliseconds: int) -> str:
    """Return a time in UTC for people without a script."""
    text = iso_time(milliseconds)
    return f"{text[:10]} {text[11:19]} UTC" if text else "unknown"


def sql_time(text: str) -> str:
    """Return a time with a zone, as a query returns it, as an HTML `time` element contains it."""
    return text.replace(" ", "T", 1)


def with_query(request: Request, **changed: object) -> str:
    """Return the address of this page with some parameters changed; None removes one."""
    pairs = {**request.query_params, **changed}
    text = urlencode({key: str(value) for key, value in pairs.items() if value is not None})
    return f"{request.url.path}?{text}" if text else request.url.path


def url(path: str, /, **parameters: object) -> str:
    """Return an address of this console with parameters; None leaves one out."""
    text = urlencode({k: str(v) for k, v in parameters.items() if v is not None})
    return f"{path}?{text}" if text else path


@cache
def environment() -> Environment:
    """Return the templates. A variable that does not exist is an error."""
    made = Environment(
        loader=PackageLoader("mqlake.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    of_numbers: dict[str, Any] = {"counted": counted, "noun": noun}
    made.filters.update(of_numbers)
    made.filters.update(
        bytes=bytes_text,
        number=number_text,
        duration=duration_text,
        iso=iso_time,
        utc=utc_text,
        sql_time=sql_time,
        url=url,
    )
    return made


def page(
    request: Request, template: str, *, title: str, status: int = 200, **values: object
) -> Response:
    """Return a page.

    Args:
        template: its name under `templates/`.
        title: the heading, and the title of the window.
        values: what the template shows.
    """
    console, session = console_of(request), session_of(request)
    is_part = "hx-request" in request.headers
    notices = [] if is_part else console.sessions.take_notices(session)

    def page_url(number: int, parameter: str) -> str:
        return with_query(request, **{parameter: number})

    text = (
        environment()
        .get_template(template)
        .render(
            title=title,
            sections=[each for each in request.app.state.sections if session.role >= each.role],
            path=request.url.path,
            here=with_query(request),
            page_url=page_url,
            csrf_token=session.csrf,
            user_name=session.user,
            may_change=session.role >= ConsoleRole.OPERATOR and not console.options.read_only,
            is_admin=session.role >= ConsoleRole.ADMIN,
            read_only=console.options.read_only,
            is_stranger=session.role is ConsoleRole.STRANGER,
            notices=notices,
            old_values=[(reason, int(age)) for reason, age in noted_old_values().items()],
            version=__version__,
            **values,
        )
    )
    return HTMLResponse(text, status)
