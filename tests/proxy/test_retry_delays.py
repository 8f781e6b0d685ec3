"""The delays between deliveries to a consumer group."""

from __future__ import annotations

from mqlake.formats.config.subscription_group import (
    CustomizedRetryPolicy,
    ExponentialRetryPolicy,
    GroupRetryPolicy,
)
from mqlake.proxy.retry_delays import retry_delay


def test_the_last_delay_is_that_of_the_group() -> None:
    usual = GroupRetryPolicy()
    assert [retry_delay(usual, times) for times in (0, 1, 50)] == [10_000, 30_000, 7_200_000]
    listed = GroupRetryPolicy(customized_retry_policy=CustomizedRetryPolicy([1, 2, 3, 4]))
    assert [retry_delay(listed, times) for times in (0, 1, 2)] == [3, 4, 4]
    growing = GroupRetryPolicy("EXPONENTIAL", ExponentialRetryPolicy(10, 100, 3))
    assert [retry_delay(growing, times) for times in (0, 1, 2, 1 << 40)] == [10, 30, 90, 100]
