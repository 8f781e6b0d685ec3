"""The log of a server, on stderr: lines for people, or JSON objects for programs."""

from __future__ import annotations

import logging
import sys
import warnings
from enum import Enum

import msgspec

_TEXT = "%(asctime)s %(levelname)-7s %(message)s"

_log = logging.getLogger(__name__)


class LogFormat(Enum):
    """How the log is written."""

    TEXT = "text"
    JSON = "json"


class _LogEvent(msgspec.Struct, omit_defaults=True):
    """One event; `time` is in milliseconds since 1970."""

    time: int
    level: str
    logger: str
    message: str
    exception: str | None = None


class _Json(logging.Formatter):
    """Formats each record as one JSON object on a line of its own."""

    def format(self, record: logging.LogRecord) -> str:
        exception = self.formatException(record.exc_info) if record.exc_info else None
        line = _LogEvent(
            int(record.created * 1000),
            record.levelname,
            record.name,
            record.getMessage(),
            exception,
        )
        return msgspec.json.encode(line).decode()


def start_logging(form: LogFormat) -> None:
    """Write log records and warnings of all modules to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form is LogFormat.JSON else logging.Formatter(_TEXT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    warnings.showwarning = _log_warning


def _log_warning(message: Warning | str, *_: object, **__: object) -> None:
    _log.warning("%s", message)
