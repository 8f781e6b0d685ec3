"""The settings that limit what one address and one user may use."""

from __future__ import annotations

from typing import Final

from mqlake.broker.settings import BrokerSettings
from mqlake.remoting.quotas.quota import Quota

QUOTAS: Final = tuple(
    f"max_{what}_per_{whose}"
    for what in ("connections", "request_rate", "byte_rate", "in_flight")
    for whose in ("address", "user")
)
"""The attributes of these settings."""


def address_quota(settings: BrokerSettings) -> Quota:
    """Return what one address may use."""
    return Quota(
        settings.max_connections_per_address,
        settings.max_request_rate_per_address,
        settings.max_byte_rate_per_address,
        settings.max_in_flight_per_address,
    )


def user_quota(settings: BrokerSettings) -> Quota:
    """Return what one user may use; nothing is limited while nobody is known."""
    if not (settings.authentication_enabled or settings.acl_enable):
        return Quota()
    return Quota(
        settings.max_connections_per_user,
        settings.max_request_rate_per_user,
        settings.max_byte_rate_per_user,
        settings.max_in_flight_per_user,
    )
