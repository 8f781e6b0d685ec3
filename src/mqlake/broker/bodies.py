"""Decode the bodies of administrative requests."""

from __future__ import annotations

from typing import TypeVar

from mqlake.broker.settings import BrokerSettings
from mqlake.protocol.body import request_body
from mqlake.protocol.command import Command

T = TypeVar("T")


def admin_body(kind: type[T], request: Command, settings: BrokerSettings) -> T:
    """Return the content of a JSON body of an administrative request.

    Raises:
        BodyError: the body is not valid JSON of this kind.
        RemotingError: the body is longer than `maxAdminBodySize`.
    """
    return request_body(kind, request, settings.max_admin_body_size, "maxAdminBodySize")
