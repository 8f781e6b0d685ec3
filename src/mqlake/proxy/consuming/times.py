"""How long a receive waits for messages, and for how long they are invisible then.

Upstream: `ReceiveMessageActivity`. All times are milliseconds.
"""

from __future__ import annotations

from typing import Final

from mqlake.grpc.call import Call
from mqlake.grpc.messages import (
    Code,
    PullMessageRequest,
    ReceiveMessageRequest,
    Settings,
)
from mqlake.proxy.errors import StatusError
from mqlake.proxy.settings import ProxySettings

_VERSION: Final = "x-mq-client-version"
_FIRST_WITH_CODE: Final = (5, 0, 3)
"""The first version of clients that know ILLEGAL_POLLING_TIME."""


def poll_time(
    settings: ProxySettings,
    of_client: Settings,
    call: Call,
    request: ReceiveMessageRequest | PullMessageRequest,
) -> int:
    """Return how long a call may wait for messages.

    Args:
        of_client: the settings of the client.

    Raises:
        StatusError: the deadline of the call is too near.
    """
    shortest = settings.grpc_client_consumer_min_long_polling_timeout_millis
    longest = settings.grpc_client_consumer_max_long_polling_timeout_millis
    seconds = call.remaining()
    remaining = None if seconds is None else int(seconds * 1000)
    if request.HasField("long_polling_timeout"):
        wanted = request.long_polling_timeout.ToMilliseconds()
    elif remaining is None:
        wanted = longest
    else:
        wanted = remaining - of_client.request_timeout.ToMilliseconds() // 2
    wanted = min(max(wanted, shortest), longest)
    if remaining is None:
        return wanted
    if wanted > remaining and remaining < shortest:
        code = Code.BAD_REQUEST
        if _version(call.metadata.get(_VERSION, "")) >= _FIRST_WITH_CODE:
            code = Code.ILLEGAL_POLLING_TIME
        reason = (
            "The deadline time remaining is not enough for polling, please check network condition"
        )
        raise StatusError(code, reason)
    # The answer must reach the client before its deadline.
    return min(wanted, remaining - settings.long_polling_reserve_time_in_millis)


def invisible_time(settings: ProxySettings, request: ReceiveMessageRequest) -> int:
    """Return for how long received messages are invisible.

    Raises:
        StatusError: ILLEGAL_INVISIBLE_TIME.
    """
    if request.auto_renew:
        return settings.default_invisible_time_mills
    found = request.invisible_duration.ToMilliseconds()
    shortest = settings.min_invisible_time_mills_for_recv
    check_invisible(found, shortest, settings.max_invisible_time_mills)
    return found


def check_invisible(milliseconds: int, shortest: int, longest: int) -> None:
    """Refuse an invisible time that is too short or too long.

    Raises:
        StatusError: ILLEGAL_INVISIBLE_TIME.
    """
    if milliseconds < shortest:
        raise StatusError(
            Code.ILLEGAL_INVISIBLE_TIME,
            f"the invisibleTime is too small. min is {shortest}",
        )
    if milliseconds > longest:
        raise StatusError(
            Code.ILLEGAL_INVISIBLE_TIME,
            f"the invisibleTime is too large. max is {longest}",
        )


def _version(text: str) -> tuple[int, ...]:
    parts = text.split("-", maxsplit=1)[0].split(".")[:3]
    return tuple(map(_number, parts))


def _number(text: str) -> int:
    # Python refuses to read thousands of digits.
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
