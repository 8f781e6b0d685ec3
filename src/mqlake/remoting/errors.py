"""Errors of connections."""

from __future__ import annotations

from mqlake.errors import MqlakeError


class ConnectionFailedError(MqlakeError):
    """There is no connection to the address, or it was lost before the answer arrived."""


class ConnectTimeoutError(ConnectionFailedError):
    """The connection was neither established nor refused within the given time."""


class CannotListenError(MqlakeError):
    """A server cannot listen on its address, for example because another one does."""


class RequestTimeoutError(MqlakeError):
    """No answer arrived within the given time."""
