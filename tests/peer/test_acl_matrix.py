"""Who may make which request: mqlake's broker beside RocketMQ's, over every request code.

The differences are exactly those of the table in docs/security.md.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlake.protocol.codes import RequestCode
from tests.auth.closed import CLOSED, closed
from tests.auth.matrix import FORGER, NOBODY, SUPER, USERS, Verdicts, prepare, verdicts
from tests.auth.requests import EXAMPLES
from tests.peer.java_build import JavaMissingError
from tests.peer.rocketmq_cluster import PROVIDERS, Cluster

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
SETTINGS = {**CLOSED, "authorizationEnabled": "true"}
UNCHECKED = "not checked"
"""What the table says about RocketMQ if every user may make a request."""
ALSO_ALLOWED = {
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: {"consumer"},
    RequestCode.GET_MAX_OFFSET: {"consumer"},
    RequestCode.GET_MIN_OFFSET: {"consumer"},
    RequestCode.GET_EARLIEST_MSG_STORETIME: {"consumer"},
    RequestCode.VIEW_MESSAGE_BY_ID: {"cluster-reader"},
    RequestCode.END_TRANSACTION: {"cluster-reader", "monitoring"},
    RequestCode.RESUME_CHECK_HALF_MESSAGE: {"cluster-owner", "all-but-t"},
}
"""Who may make a request only at mqlake's broker."""


OTHER_SETTINGS = {RequestCode.CONSUME_MESSAGE_DIRECTLY, 3001, 3004, 3005, 3010}
"""Requests of the page that differ only for a message of another topic, in their answers, or with
other settings.
"""


def rows() -> Iterator[list[str]]:
    """Yield the cells of the table of differences."""
    text = PAGE.read_text(encoding="utf-8")
    part = text.partition("## Differences from RocketMQ 5.5.0")[2].partition("\n## ")[0]
    for line in part.splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def documented(*, is_unchecked: bool) -> set[int]:
    """Return the request codes of the rows that say so."""
    return {
        int(number)
        for what, there, _ in rows()
        if (there == UNCHECKED) is is_unchecked
        for number in re.findall(r"\b[0-9]{2,6}\b", what)
    }


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Verdicts, Verdicts]]:
    """The verdicts of RocketMQ's broker, and of mqlake's."""
    path, codes = tmp_path_factory.mktemp("matrix"), sorted(EXAMPLES)
    (path / "java").mkdir()
    (path / "store").mkdir()
    try:
        cluster = Cluster(path / "java", path / "store", {**SETTINGS, **PROVIDERS})
    except JavaMissingError as reason:
        pytest.skip(f"without the real RocketMQ: {reason}")

    async def compare() -> tuple[Verdicts, Verdicts]:
        await prepare(cluster.broker)
        theirs = await verdicts(cluster.broker, codes)
        async with closed(path / "mqlake", SETTINGS) as asking:
            await prepare(asking.broker.address)
            return theirs, await verdicts(asking.broker.address, codes)

    try:
        cluster.start()
        yield asyncio.run(compare())
    finally:
        cluster.kill()


def test_every_request_is_refused_without_a_signature(both: tuple[Verdicts, Verdicts]) -> None:
    for found in both:
        opened = [key for key, each in found.items() if key[1] in (NOBODY, FORGER)]
        assert len(opened) == 2 * len(EXAMPLES)
        assert [key for key in opened if not found[key].is_refused] == []


def test_a_super_user_may_do_everything(both: tuple[Verdicts, Verdicts]) -> None:
    for found in both:
        refused = [code for code in EXAMPLES if found[code, SUPER].is_refused]
        assert refused == []


def test_differences_are_those_of_the_page(both: tuple[Verdicts, Verdicts]) -> None:
    theirs, ours = both
    codes = [code for code in EXAMPLES if theirs[code, SUPER].is_served]
    unchecked, other, also = set[int](), set[int](), dict[RequestCode, set[str]]()
    for code in codes:
        stricter = {
            name
            for name in USERS
            if ours[code, name].is_refused and not theirs[code, name].is_refused
        }
        looser = {
            name
            for name in USERS
            if theirs[code, name].is_refused and not ours[code, name].is_refused
        }
        if looser:
            also[code] = looser
        if stricter or looser:
            is_open = not any(theirs[code, name].is_refused for name in USERS)
            (unchecked if is_open else other).add(int(code))
    assert also == ALSO_ALLOWED
    assert unchecked == documented(is_unchecked=True)
    assert other == documented(is_unchecked=False) - OTHER_SETTINGS


def test_users_differ(both: tuple[Verdicts, Verdicts]) -> None:
    """Each user may make a request that another one may not."""
    for found in both:
        allowed = {
            name: frozenset(code for code in EXAMPLES if not found[code, name].is_refused)
            for name in USERS
        }
        assert len(set(allowed.values())) == len(USERS)
