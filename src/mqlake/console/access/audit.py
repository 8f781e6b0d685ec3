"""One log line for each change, with its result."""

from __future__ import annotations

import json
import logging
from typing import Final

from mqlake.console.access.forms import CSRF_FIELD, PostedForm

_log: Final = logging.getLogger("mqlake.console.audit")
_LONGEST: Final = 200
_NOT_LOGGED: Final = ("body", "schema")
"""Fields that may contain anything, such as data of persons."""
_SECRET: Final = ("password", "secret", "token", "credential")


def shown_fields(form: PostedForm) -> dict[str, str]:
    """Return the fields of a form for the log: shortened, without secrets."""
    shown: dict[str, str] = {}
    for name, value in form.pairs[:50]:
        if name == CSRF_FIELD:
            continue
        is_secret = any(word in name.lower() for word in _SECRET)
        text = "(not logged)" if is_secret or name in _NOT_LOGGED else value
        shown[name[:_LONGEST]] = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return shown


def audit(user: str, address: str, action: str, form: PostedForm, result: str) -> None:
    """Log a change. Control characters are escaped, so a value cannot forge a line.

    Args:
        user: empty if nobody logged in.
        result: "done", "refused: …" or "failed: …".
    """
    fields = _printable(shown_fields(form))
    result = _printable(result[: 2 * _LONGEST])
    name = _printable(user[:_LONGEST]) if user else "-"
    _log.info("audit %s user=%s from=%s fields=%s result=%s", action, name, address, fields, result)


def _printable(value: object) -> str:
    """Return JSON without characters that move a terminal's cursor or look like others."""
    return json.dumps(value, ensure_ascii=True)
