"""Calls are counted by method and code; slow ones are logged."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from mqlake.grpc.messages import Code, QueryRouteRequest
from mqlake.proxy.counts import CallCounts
from mqlake.remoting.metrics.calls import CALLS, SLOW_CALLS
from mqlake.remoting.metrics.requests import LATENCY
from tests import simulated
from tests.proxy.sending.messages import message, send
from tests.proxy.serving import named, serving


def test_calls_are_counted_by_method_and_code(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(tmp_path) as calls:
            calls.topic("T")
            for _ in range(3):
                await calls.ask("SendMessage", send(message()))
            await calls.ask("SendMessage", send(message(body=b"")))
            await calls.ask("QueryRoute", QueryRouteRequest(topic=named("T")))
            calls.counts.add_unanswered("SendMessage", "CANCELLED")
            found = calls.counts.samples()
            counted = {each.labels: each.value for each in found if each.metric is CALLS}
            assert counted == {
                ("SendMessage", "20000"): 3,
                ("SendMessage", str(int(Code.MESSAGE_BODY_EMPTY))): 1,
                ("SendMessage", "CANCELLED"): 1,
                ("QueryRoute", "20000"): 1,
            }
            kinds = {each.labels[:3] for each in found if each.metric is LATENCY}
            assert ("grpc", "SendMessage", "20000") in kinds

    simulated.run(run())


def test_slow_calls_are_logged_a_few_at_a_time(caplog: pytest.LogCaptureFixture) -> None:
    counts = CallCounts(slow=10)
    with caplog.at_level(logging.WARNING, "mqlake.proxy"):
        counts.add("SendMessage", 20000, 0.005, "10.0.0.1:1")
        assert not caplog.messages
        for _ in range(30):
            counts.add("SendMessage", 50001, 0.012, "10.0.0.1:1")
        counts.add("ReceiveMessage", 20000, None, "10.0.0.1:1")
    assert caplog.messages[0] == "slow: 10.0.0.1:1 SendMessage: 12 ms until 50001"
    assert len(caplog.messages) == 20
    (slow,) = [each.value for each in counts.samples() if each.metric is SLOW_CALLS]
    assert slow == 30
