"""One log line for each change, with its result."""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from mqlake.console.access.forms import CSRF_FIELD, PostedForm

_log: Final = logging.getLogger("mqlake.console.audit")
_LONGEST: Final = 200
_SECRET: Final = ("password", "secret", "token", "credential")


def shown_fields(form: PostedForm) -> dict[str, str]:
    """Return the fields of a form for the log: shortened, without secrets."""
    shown: dict[str, str] = {}
    for name, value in form.pairs[:50]:
        if name == CSRF_FIELD:
            continue
        is_secret = any(word in name.lower() for word in _SECRET)
        text = "(not logged)" if is_secret else value
        shown[name[:_LONGEST]] = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return shown


def audit(user: str, address: str, action: str, form: PostedForm, result: str) -> None:
    """Log a change. Control characters are escaped, so a value cannot forge a line.

    Args:
        user: empty if nobody logged in.
        result: "done", "refused: …" or "failed: …".
    """
    fields = msgspec.json.encode(shown_fields(form)).decode()
    result = msgspec.json.encode(result[: 2 * _LONGEST]).decode()
    name = msgspec.json.encode(user[:_LONGEST]).decode() if user else "-"
    _log.info("audit %s user=%s from=%s fields=%s result=%s", action, name, address, fields, result)
