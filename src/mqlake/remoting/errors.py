"""Errors of connections."""

from __future__ import annotations

from mqlake.errors import MqlakeError


class ConnectionFailedError(MqlakeError):
    """No connection to the address, or it was lost before the answer came."""


class RequestTimeoutError(MqlakeError):
    """No answer within the time given."""
