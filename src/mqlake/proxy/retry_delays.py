"""The delays between deliveries to a consumer group (upstream: `CustomizedRetryPolicy`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mqlake.formats.config.subscription_group import GroupRetryPolicy

_DEFAULT: Final = tuple(
    1000 * seconds
    for seconds in (1, 5, 10, 30, *range(60, 660, 60), 20 * 60, 30 * 60, 60 * 60, 120 * 60)
)
"""Milliseconds, for a group without a policy of its own."""
_FIRST: Final = 2
"""The index of the delay after the first delivery."""


def listed_delays(policy: GroupRetryPolicy) -> Sequence[int]:
    """Return the delays of a policy that does not grow exponentially, in milliseconds."""
    listed = policy.customized_retry_policy
    return (listed and listed.next) or _DEFAULT


def retry_delay(policy: GroupRetryPolicy, reconsume_times: int) -> int:
    """Return after how many milliseconds a message is delivered again.

    Args:
        reconsume_times: how often it was delivered again before.
    """
    exponential = policy.exponential_retry_policy
    if policy.type == "EXPONENTIAL" and exponential is not None:
        exponent = min(max(reconsume_times, 0), 32)
        return min(exponential.initial * exponential.multiplier**exponent, exponential.max)
    delays = listed_delays(policy)
    return delays[min(max(reconsume_times, 0) + _FIRST, len(delays) - 1)]
