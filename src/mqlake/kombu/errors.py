"""The errors of a connection to RocketMQ, in the two kinds that kombu knows."""

from __future__ import annotations

from mqlake.errors import MqlakeError
from mqlake.workqueue.refusals import is_final


class ConfigurationError(MqlakeError):
    """The broker URL, a transport option or the name of a queue cannot be used."""


class UnavailableError(MqlakeError):
    """No broker did what was requested; kombu may connect again and retry."""


class RequestRefusedError(MqlakeError):
    """A broker refused a request, and will refuse it again; kombu does not retry."""


def as_kombu_error(error: MqlakeError) -> MqlakeError:
    """Return the error of the kind that tells kombu whether to retry."""
    if isinstance(error, (ConfigurationError, UnavailableError, RequestRefusedError)):
        return error
    return (RequestRefusedError if is_final(error) else UnavailableError)(str(error))
