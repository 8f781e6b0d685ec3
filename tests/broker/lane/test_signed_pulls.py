"""The lane serves signed pulls of users with permissions, and leaves all others to the checks."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqlake.auth.audit import AUDIT
from mqlake.auth.users import UserStatus
from mqlake.broker.lane import pulls as lane_pulls
from mqlake.broker.lane.choice import is_chosen
from mqlake.broker.lane.lane import Lane
from mqlake.broker.lane.pulls import LanePulls
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.protocol.codes import ResponseCode
from mqlake.protocol.command import Command, Serialization, request
from mqlake.protocol.frames import decode, encode
from mqlake.protocol.headers.pull import COMMITS_OFFSET, HAS_SUBSCRIPTION
from mqlake.protocol.signature import ACCESS_KEY, SIGNATURE, Credentials, signature, signed
from mqlake.remoting.client import RemotingClient
from mqlake.store.append.message import Message
from tests.auth.closed import ROOT
from tests.auth.forgeries.signed_sends import changed_fields
from tests.broker.lane.pull_lanes import pull_frame, pulls_of
from tests.broker.lane.raw_client import KINDS, RawClient
from tests.broker.lane.test_signed_sends import (
    ANN,
    BOB,
    SETTINGS,
    accounts_of,
    adopt,
    closed_lane,
    codes,
    send,
)
from tests.broker.pull.pulls import GROUP, pull_header
from tests.broker.running import PATIENCE, Running, running, to
from tests.broker.send.random_sends import KEY, TOPIC
from tests.protocol.messages import frame, pair
from tests.remoting.proxy_protocol.headers import line

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")

SUCCESS, REFUSED = ResponseCode.SUCCESS, ResponseCode.NO_PERMISSION
SUB = {"resource": f"Topic:{TOPIC}", "actions": ["Sub"], "decision": "Allow"}
BOTH = {"actions": ["Pub", "Sub"]}
MEMBER = {"resource": f"Group:{GROUP}", "actions": ["Sub"], "decision": "Allow"}
MESSAGES = 200
DIRECT, RECEIVED = "read by the lane", "received by transports"
WAYS = pytest.mark.parametrize("way", [DIRECT, RECEIVED])


def pull(user: Credentials | None, offset: int = 0, kind: int = 0, **fields: Any) -> bytes:
    """Return a pull of one message, which a user has signed, with its offset as its opaque."""
    header = pull_header(offset, **({"topic": TOPIC, "max_msg_nums": 1} | fields))
    data = pull_frame(offset, kind, header)
    return data if user is None else encode(signed(decode(data), user))


async def fill(broker: Running, count: int = MESSAGES) -> None:
    store: Any = broker.state.store
    await store.put_many([Message(TOPIC, b"%d" % number) for number in range(count)])
    while store.watermarks.dispatched < store.watermarks.confirmed:
        store.core.tick()


@asynccontextmanager
async def pulling(
    path: Path, patch: pytest.MonkeyPatch, way: str = DIRECT, **settings: object
) -> AsyncGenerator[tuple[Running, Callable[[], int]]]:
    """Run a broker with two users who may pull; yield what returns how many pulls the lane has
    served.
    """
    served, apply = list[int](), LanePulls.apply

    def noted(pulls: LanePulls, took: float) -> int:
        served.append(apply(pulls, took))
        return served[-1]

    with patch.context() as patched:
        patched.setattr(LanePulls, "apply", noted)
        patched.setattr(LanePulls, "_was_seen", lambda *_: True)
        patched.setattr(lane_pulls, "_TURN", PATIENCE)
        if way == RECEIVED:
            patched.setattr(Lane, "join", lambda *_: None)
        async with closed_lane(path, **settings) as (broker, _):
            pulls: Any = pulls_of(broker)
            await asyncio.wait_for(pulls.load(), PATIENCE)
            assert pulls._is_loaded()
            await fill(broker)
            for user in (ANN, BOB):
                adopt(broker, user, SUB | BOTH, MEMBER)
            yield broker, lambda: sum(served)


async def joined(
    broker: Running, count: Callable[[], int], user: Credentials = ANN, kind: int = 0
) -> RawClient:
    """Return a connection over which a user pulls, with the lane's help."""
    client, before = await RawClient.connect(broker), count()
    for _ in range(3):
        assert await codes(client, *[pull(user, 0, kind)] * 20) == [SUCCESS] * 20
    assert count() > before + 20
    return client


@WAYS
@pytest.mark.parametrize("kind", KINDS)
def test_signed_pulls_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int, way: str
) -> None:
    async def run() -> None:
        async with pulling(tmp_path, monkeypatch, way) as (broker, count):
            client, before = await joined(broker, count, kind=kind), count()
            offsets = range(1, 100)
            fields = {"sys_flag": HAS_SUBSCRIPTION | COMMITS_OFFSET}
            found = await client.ask(*(pull(ANN, offset, kind) for offset in offsets))
            assert [each.code for each in found] == [SUCCESS] * 99
            assert [each.fields["nextBeginOffset"] for each in found] == [
                str(offset + 1) for offset in offsets
            ]
            assert count() == before + 99
            committing = [
                pull(ANN, offset, kind, commit_offset=offset, **fields) for offset in offsets
            ]
            assert await codes(client, *committing) == [SUCCESS] * 99
            assert count() >= before + 99 + 90
            offset = broker.state.store.config.consumer_offsets.query(GROUP, TOPIC, 0)
            assert offset == 99

    asyncio.run(run())


@WAYS
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_rightly_signed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int, way: str
) -> None:
    async def run() -> None:
        async with pulling(tmp_path, monkeypatch, way) as (broker, count):
            client = await joined(broker, count, kind=kind)
            stranger, right = Credentials(ANN.access_key, "other"), decode(pull(ANN, 7, kind))
            others = [pull(None, 7, kind), pull(stranger, 7, kind), pull(ANN, 7, kind, topic="T")]
            others += [pull(ANN, 7, kind, consumer_group="other readers")]
            signature = right.fields[SIGNATURE]
            for name, value in (
                (SIGNATURE, signature.swapcase()),
                (SIGNATURE, signature[:-1]),
                (SIGNATURE, "A" * 28),
                (ACCESS_KEY, BOB.access_key),
                *((name, "8") for name in ("queueOffset", "commitOffset", "maxMsgNums")),
                *((name, "1") for name in ("queueId", "suspendTimeoutMillis")),
            ):
                changed = request(right.code, {**right.fields, name: value})
                changed.serialization = Serialization(kind)
                others.append(encode(changed))
            for other in others:
                before = count()
                frames = [pull(ANN, 1, kind), other, pull(ANN, 2, kind)]
                assert await codes(client, *frames) == [SUCCESS, REFUSED, SUCCESS]
                assert count() >= before + 1

    asyncio.run(run())


@WAYS
def test_two_users_of_one_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    async def run() -> None:
        async with pulling(tmp_path, monkeypatch, way) as (broker, count):
            client = await joined(broker, count)
            for user in (BOB, ANN, BOB):
                before = count()
                found = await codes(client, *(pull(user, number) for number in range(30)))
                assert found == [SUCCESS] * 30
                assert count() > before
            (name,) = {
                name
                for signers in broker.state.access.signers._of.values()  # type: ignore[attr-defined]
                for peer, name in signers.items()
                if peer.address.endswith(f":{client.writer.get_extra_info('sockname')[1]}")
            }
            assert name == BOB.access_key
            mixed = [pull(user, number) for number, user in enumerate((ANN, BOB) * 20)]
            assert await codes(client, *mixed) == [SUCCESS] * 40

    asyncio.run(run())


CHANGES: dict[str, Callable[[Running], None]] = {
    "password": lambda broker: adopt(broker, Credentials("ann", "new-password"), SUB, MEMBER),
    "disabled": lambda broker: adopt(broker, ANN, SUB, MEMBER, user_status=UserStatus.DISABLE),
    "no policy": lambda broker: adopt(broker, ANN),
    "no group": lambda broker: adopt(broker, ANN, SUB),
    "no topic": lambda broker: adopt(broker, ANN, MEMBER),
    "deny": lambda broker: adopt(broker, ANN, SUB | {"decision": "Deny"}, MEMBER),
    "another group": lambda broker: adopt(broker, ANN, SUB, MEMBER | {"resource": "Group:other"}),
    "another action": lambda broker: adopt(broker, ANN, SUB | {"actions": ["Pub"]}, MEMBER),
    "another network": lambda broker: adopt(
        broker, ANN, SUB | {"sourceIps": ["10.0.0.0/8"]}, MEMBER
    ),
    "deleted": lambda broker: accounts_of(broker).adopt(
        accounts_of(broker).state.without_user(ANN.access_key)
    ),
}


@WAYS
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_counts_for_the_next_pull(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int, way: str
) -> None:
    async def run() -> None:
        async with pulling(tmp_path, monkeypatch, way) as (broker, count):
            client = await joined(broker, count, kind=kind)
            for name, change in CHANGES.items():
                assert await codes(client, *[pull(ANN, 1, kind)] * 40) == [SUCCESS] * 40, name
                before = count()
                assert await codes(client, *[pull(ANN, 1, kind)] * 9) == [SUCCESS] * 9, name
                assert count() > before, name
                change(broker)
                assert await codes(client, *[pull(ANN, 2, kind)] * 9) == [REFUSED] * 9, name
                adopt(broker, ANN, SUB, MEMBER)

    asyncio.run(run())


@WAYS
def test_groups_topics_and_settings_count_as_without_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    async def run() -> None:
        async with pulling(tmp_path, monkeypatch, way) as (broker, count):
            client, live = await joined(broker, count), broker.runtime.live
            usual, state = live.now, broker.state
            live.replace(msgspec.structs.replace(usual, broker_permission=2))
            assert await codes(client, pull(ANN, 1)) == [ResponseCode.NO_PERMISSION]
            live.replace(usual)
            assert await codes(client, *[pull(ANN, 1)] * 20) == [SUCCESS] * 20
            group = SubscriptionGroup(GROUP, consume_enable=False)
            state.groups.put(group)
            assert await codes(client, pull(ANN, 1)) == [ResponseCode.NO_PERMISSION]
            state.groups.put(msgspec.structs.replace(group, consume_enable=True))
            assert await codes(client, *[pull(ANN, 1)] * 20) == [SUCCESS] * 20
            state.topics.remove(TOPIC)
            assert await codes(client, pull(ANN, 1)) == [ResponseCode.TOPIC_NOT_EXIST]

    asyncio.run(run())


@WAYS
def test_who_may_not_pull_creates_no_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    async def run() -> None:
        async with pulling(tmp_path, monkeypatch, way) as (broker, count):
            client, before = await joined(broker, count), count()
            stranger = Credentials(ANN.access_key, "other")
            for user in (ANN, stranger, None):
                frames = [pull(user, 1, consumer_group="forbidden")] * 40
                assert await codes(client, *frames) == [REFUSED] * 40
            assert broker.state.groups.get("forbidden") is None
            assert count() == before

    asyncio.run(run())


@WAYS
def test_pulls_of_strangers_are_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Otherwise they could displace the pulls of users."""

    async def run() -> None:
        async with pulling(tmp_path, monkeypatch, way) as (broker, count):
            client, tables = await joined(broker, count), pulls_of(broker).tables
            known = len(tables.accepted)
            for number in range(1, 50):
                stranger = Credentials(ANN.access_key, "other")
                frames = [pull(stranger, 1, max_msg_nums=number), pull(None, 1, sub_version=number)]
                assert await codes(client, *frames) == [REFUSED] * 2
            assert len(tables.accepted) == known
            assert await codes(client, pull(ANN, 1)) == [SUCCESS]

    asyncio.run(run())


def test_addresses_behind_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever pulls from a network without a permission is refused, though another may."""

    async def run() -> None:
        settings = {"proxyProtocolAddresses": "127.0.0.1"}
        async with pulling(tmp_path, monkeypatch, **settings) as (broker, count):
            inside = {"sourceIps": ["192.0.2.0/24"]}
            adopt(broker, ANN, SUB | BOTH | inside, MEMBER)
            clients: list[tuple[RawClient, int]] = []
            for address, code in (("192.0.2.9", SUCCESS), ("192.0.3.9", REFUSED)):
                client = await RawClient.connect(broker)
                client.writer.write(line(address, 4711))
                clients.append((client, code))
            for _ in range(3):
                for client, code in clients:
                    before = count()
                    assert await codes(client, *[pull(ANN, 1)] * 20) == [code] * 20
                    assert await codes(client, *[send(ANN, 1)] * 20) == [code] * 20
                    assert (count() > before) == (code == SUCCESS)

    asyncio.run(run())


def test_allowed_pulls_are_logged_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with pulling(tmp_path, monkeypatch, RECEIVED) as (broker, count):
            client, before = await joined(broker, count), count()
            with caplog.at_level(logging.DEBUG, AUDIT.name):
                caplog.clear()
                assert await codes(client, *[pull(ANN)] * 20) == [SUCCESS] * 20
                lines = [each for each in caplog.messages if "[AUTHENTICATION]" in each]
                assert (len(lines), count()) == (20, before)

    asyncio.run(run())


def test_limits_of_users_count_each_pull(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with pulling(tmp_path, monkeypatch) as (broker, count):
            client, before = await joined(broker, count), count()
            live = broker.runtime.live
            live.replace(msgspec.structs.replace(live.now, max_request_rate_per_user=1))
            found = await codes(client, *[pull(ANN)] * 30)
            assert ResponseCode.SERVICE_NOT_AVAILABLE in found
            assert count() == before

    asyncio.run(run())


# With the lane and without it


def forged(dice: random.Random, opaque: int) -> bytes:
    """Return a pull that was changed after it was signed, or written in another way."""
    user, kind = dice.choice((ANN, BOB)), dice.choice(KINDS)
    asked = decode(pull(user, dice.randrange(MESSAGES), kind))
    pairs: list[tuple[str, str | None]] = list(asked.fields.items())
    if dice.random() < 0.2:
        fields = {**asked.fields, dice.choice(("extra", "_UNIQUE_KEY_QUERY", "Z")): "größer"}
        fields.pop(SIGNATURE)
        pairs = [*fields.items(), (SIGNATURE, signature(fields, b"", user.secret_key, 513))]
    if dice.random() < 0.3:
        dice.shuffle(pairs)
    if dice.random() < 0.8:
        pairs, _ = changed_fields(dice, pairs, b"")
    return _written(pairs, kind, opaque)


def _written(pairs: Sequence[tuple[str, str | None]], kind: int, opaque: int) -> bytes:
    """Return a pull with these fields, of which names may occur twice."""
    if kind == Serialization.JSON:
        text = b",".join(
            msgspec.json.encode(name) + b":" + msgspec.json.encode(value) for name, value in pairs
        )
        header = b'{"code":11,"extFields":{%b},"flag":0,"language":"JAVA","opaque":%d,' % (
            text,
            opaque,
        )
        return frame(header + b'"serializeTypeCurrentRPC":"JSON","version":513}')
    fields = b"".join(pair(n.encode(), v.encode()) for n, v in pairs if v is not None)
    start = encode(Command(11, opaque, version=513, serialization=kind))[8:-4]
    return frame(start + len(fields).to_bytes(4) + fields, kind=kind)


def stream_of(dice: random.Random) -> list[bytes]:
    """Return pulls that leave their connection open, most of them rightly signed."""
    stream: list[bytes] = []
    owner = dice.choice((ANN, BOB))
    while len(stream) < 300:
        if dice.random() < 0.75:
            asked = decode(pull(owner, dice.randrange(MESSAGES), dice.choice(KINDS)))
            asked.opaque = len(stream)
            stream.append(encode(asked))
        else:
            stream.append(forged(dice, len(stream)))
    return stream


@WAYS
def test_answers_are_those_of_a_broker_without_a_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    dice = random.Random(7)
    streams = [stream_of(dice) for _ in range(3)]

    async def outcome(broker: Running) -> list[dict[int, tuple[int, str | None, int]]]:
        found: list[dict[int, tuple[int, str | None, int]]] = []
        for stream in streams:
            client = await RawClient.connect(broker)
            answers: list[Command] = []
            for begin in range(0, len(stream), 30):
                answers += await client.ask(*stream[begin : begin + 30])
            found.append({one.opaque: (one.code, one.remark, len(one.body)) for one in answers})
        return found

    async def run() -> None:
        async with pulling(tmp_path / "on", monkeypatch, way) as (broker, count):
            found = await outcome(broker)
            assert count() > 100
        monkeypatch.setenv("MQLAKE_LANE", "off")
        async with running(tmp_path / "off", **SETTINGS) as broker:
            broker.client = RemotingClient(connect_timeout=PATIENCE, credentials=ROOT)
            await broker.send(to(TOPIC, properties=KEY))
            for user in (ANN, BOB):
                adopt(broker, user, SUB | BOTH, MEMBER)
            await fill(broker)
            try:
                assert await outcome(broker) == found
            finally:
                await RawClient.close_all()
        assert {code for stream in found for code, *_ in stream.values()} >= {SUCCESS, REFUSED}

    asyncio.run(run())
