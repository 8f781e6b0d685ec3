"""RocketMQ's own integration tests: the page about them, and a fast selection of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peer.compatibility.java_class import FAILED, PASSED, Outcome
from tests.peer.compatibility.page import PAGE, page
from tests.peer.compatibility.record import load, reasons, save, unexplained
from tests.peer.compatibility.run import run_class
from tests.peer.compatibility.servers import JAVA, MQLAKE, started
from tests.peer.java_build import JavaMissingError

SELECTION: dict[str, tuple[str, ...]] = {
    "client.producer.querymsg.QueryMsgByKeyIT": ("testQueryMsg",),
    "client.consumer.tag.MulTagSubIT": ("testSubTwoTabAndMatchOne",),
    "client.producer.order.OrderMsgIT": ("testOrderMsg",),
    "client.producer.batch.BatchSendIT": (
        "testBatchSend_SysInnerBatch",
        "testBatchSend_SysOuterBatch",
    ),
    "offset.OffsetResetForPopIT": (
        "testResetOffsetAfterPop",
        "testResetOffsetThenAckOldForPopOrderly",
        "testRestOffsetToSkipMsgForPopOrderly",
    ),
}
"""Classes and methods that are quick, do not depend on pauses, and use much of a broker.

One JVM runs all of them. The last class changes settings.
"""

CLASSES = ",".join(SELECTION)
METHODS = [method for methods in SELECTION.values() for method in methods]


def test_the_page_says_what_was_recorded() -> None:
    assert PAGE.read_text() == page(load(), reasons()), (
        "write it again: python -c 'from tests.peer.compatibility.page import write; write()'"
    )


def test_each_failure_has_a_reason_and_nothing_else_has() -> None:
    record = load()
    ours = {name: sides[MQLAKE] for name, sides in record.items() if MQLAKE in sides}
    assert not unexplained(ours)
    passed = {
        name
        for name, sides in record.items()
        if all(side in sides and sides[side].state == PASSED for side in (MQLAKE, JAVA))
    }
    assert not reasons().keys() & passed
    assert reasons().keys() <= record.keys()


def test_a_record_keeps_what_a_run_left_out(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    passed, failed = Outcome(PASSED, 1.0), Outcome(FAILED, 2.0, "why")
    save({MQLAKE: {"A#a": passed, "B#b": passed}}, keep=True, path=path)
    save({MQLAKE: {"A#a": failed}, JAVA: {"A#a": passed}}, keep=True, path=path)
    assert load(path) == {"A#a": {MQLAKE: failed, JAVA: passed}, "B#b": {MQLAKE: passed}}
    save({MQLAKE: {"A#a": passed}}, keep=False, path=path)
    assert load(path) == {"A#a": {MQLAKE: passed}}


@pytest.mark.peer
@pytest.mark.timeout(1800)
def test_rocketmq_tests_pass(tmp_path: Path) -> None:
    try:
        with started(MQLAKE, tmp_path) as servers:
            outcomes = run_class(servers, CLASSES, METHODS, again=3)
    except JavaMissingError as reason:
        pytest.skip(f"without RocketMQ's tests: {reason}")
    assert outcomes.keys() == {*METHODS}
    failed = {name: each for name, each in outcomes.items() if each.state != PASSED}
    if failed:
        print((tmp_path / MQLAKE / f"{CLASSES}.log").read_text()[-40_000:])
    assert not failed
