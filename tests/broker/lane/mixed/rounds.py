"""Two brokers, of which one has the lane, and the scripts that both play."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from mqlake.broker.lane import lane, layout, seats
from mqlake.broker.lane import pulls as lane_pulls
from mqlake.broker.lane.kernel import LaneKernel
from mqlake.broker.lane.pulls import LanePulls
from mqlake.broker.lane.seats import Decryption
from mqlake.protocol.signature import Credentials
from mqlake.remoting.client import RemotingClient
from mqlake.store.append.message import Message
from tests.auth.closed import ROOT
from tests.broker.lane.lanes import served, with_lane
from tests.broker.lane.mixed.judging import differences, wrong
from tests.broker.lane.mixed.playing import Outcome, Player
from tests.broker.lane.mixed.requests import ANN, BOB, MESSAGES, PULLED, QUEUES, TOPIC
from tests.broker.lane.mixed.script import draw
from tests.broker.lane.pull_lanes import pulls_of
from tests.broker.lane.test_signed_sends import SETTINGS, adopt
from tests.broker.pull.pulls import GROUP
from tests.broker.running import PATIENCE, Running, running
from tests.broker.send.streams import warm
from tests.tls.certificates import Authority


class Round(NamedTuple):
    """How the brokers are set.

    Attributes:
        is_closed: whether they ask for signatures.
        flush: `flushDiskType`.
        is_patient: whether connections stay in the lane that send much that is unusual, and its
            turns last until all that has arrived is served.
    """

    is_closed: bool
    flush: str
    is_patient: bool


class Seen(NamedTuple):
    """What has happened in a round.

    Attributes:
        violations: what was wrong, with the seeds.
        counts: of what happened.
    """

    violations: list[str]
    counts: Counter[str]


async def play(directory: Path, given: Round, seeds: Iterable[int]) -> Seen:
    """Let both brokers play the scripts of these seeds."""
    counts, violations = Counter[str](), list[str]()
    async with _players(directory, given, counts) as players:
        for seed in seeds:
            script, found = draw(seed, is_closed=given.is_closed), list[Outcome]()
            for name, player in players.items():
                outcome = await player.play(script)
                violations += [f"{seed}, {name}: {each}" for each in wrong(script, outcome)]
                found.append(outcome)
                counts["connections"] += len(script.lines)
                counts["answers"] += sum(len(each.answers) for each in outcome.found)
            violations += [f"{seed}: {each}" for each in differences(script, *found)]
        for player in players.values():
            counts += player.seen
    return Seen(violations, counts)


@asynccontextmanager
async def _players(
    directory: Path, given: Round, counts: Counter[str]
) -> AsyncGenerator[dict[str, Player]]:
    authority = Authority(directory)
    settings = authority.settings() | {
        "tls.server.mode": "permissive",
        "tls.enable": False,
        "proxyProtocolAddresses": "127.0.0.1",
        "flushDiskType": given.flush,
    }
    user: Credentials | None = None
    if given.is_closed:
        settings, user = settings | SETTINGS, ROOT
    with _patches(given, counts):
        async with with_lane(directory / "lane", user, **settings) as (broker, calls):
            with patch.dict(os.environ, {"MQLAKE_LANE": "off"}):
                async with running(directory / "ordinary", **settings) as other:
                    other.client = RemotingClient(connect_timeout=PATIENCE, credentials=user)
                    await warm(other)
                    pulls: Any = pulls_of(broker)
                    await asyncio.wait_for(pulls.load(), PATIENCE)
                    for each in (broker, other):
                        await _prepare(each, is_closed=given.is_closed)
                    players = {
                        "with the lane": Player(broker, authority.ca, directory),
                        "without it": Player(other, authority.ca, directory),
                    }
                    try:
                        yield players
                    finally:
                        counts["sends"] += served(calls)
                        for each in players.values():
                            each.close()


@contextmanager
def _patches(given: Round, counts: Counter[str]) -> Any:
    apply = LanePulls.apply

    def noted(pulls: LanePulls, took: float) -> int:
        count = apply(pulls, took)
        counts["pulls"] += count
        return count

    serve = Decryption.serve

    def noted_turn(decryption: Decryption, kernel: LaneKernel, log: Any, ends: Any) -> int:
        reason = serve(decryption, kernel, log, ends)
        counts["together"] += kernel.numbers[layout.WITHHELD] > 1
        return reason

    most = 1 << 30 if given.is_patient else seats._MOST_OTHERS  # pyright: ignore[reportPrivateUsage]
    turn = int(PATIENCE * 1e9) if given.is_patient else lane._TURN  # pyright: ignore[reportPrivateUsage]
    with (
        patch.object(lane, "_TURN", turn),
        patch.object(LanePulls, "apply", noted),
        patch.object(Decryption, "serve", noted_turn),
        patch.object(LanePulls, "_was_seen", lambda *_: True),
        patch.object(lane_pulls, "_TURN", PATIENCE),
        patch.object(seats, "_MOST_OTHERS", most),
    ):
        yield


async def _prepare(broker: Running, *, is_closed: bool) -> None:
    """Create the topics, the messages to be pulled, and the users."""
    for topic in (TOPIC, PULLED):
        broker.state.topics.make(topic, QUEUES)
    await broker.state.store.put_many(
        [Message(PULLED, b"%d" % each * (each % 40)) for each in range(MESSAGES)]
    )
    marks = broker.state.store.watermarks
    while marks.dispatched < marks.confirmed:
        broker.state.store.core.tick()
    if not is_closed:
        return
    near = {"sourceIps": ["10.0.0.0/8", "127.0.0.1"], "decision": "Allow"}
    send = {"resource": f"Topic:{TOPIC}", "actions": ["Pub"]} | near
    pull = {"resource": f"Topic:{PULLED}", "actions": ["Sub"]} | near
    member = {"resource": f"Group:{GROUP}", "actions": ["Sub"]} | near
    adopt(broker, ANN, send, pull, member)
    adopt(broker, BOB, send)
