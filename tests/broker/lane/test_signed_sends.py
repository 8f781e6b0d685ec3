"""The lane serves signed sends of users with permissions, and leaves all others to the checks."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from mqlake.auth import audit
from mqlake.auth.accounts import Accounts
from mqlake.auth.audit import AUDIT
from mqlake.auth.policies import PolicyType
from mqlake.auth.reading import read_policies
from mqlake.auth.users import User, UserStatus
from mqlake.broker.lane import users as users_module
from mqlake.broker.lane.choice import is_chosen
from mqlake.errors import FormatError
from mqlake.formats.properties import CRC32
from mqlake.protocol.bodies.auth import AclInfo
from mqlake.protocol.body import decode_body
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Serialization, request
from mqlake.protocol.frames import decode, encode
from mqlake.protocol.signature import Credentials, signed
from mqlake.remoting.client import RemotingClient
from tests.auth.closed import CLOSED, ROOT
from tests.auth.forgeries.signed_sends import unmutated
from tests.broker.lane.lanes import lane_of, served, with_lane
from tests.broker.lane.raw_client import FIELDS, KINDS, RawClient, usual
from tests.broker.lane.test_connections import seats
from tests.broker.running import PATIENCE, Running, running, to
from tests.broker.send.random_sends import KEY, TOPIC, batch, body_of_batch
from tests.until import until

pytestmark = pytest.mark.skipif(not is_chosen(), reason="there is no lane")

ANN = Credentials("ann", "ann-password")
BOB = Credentials("bob", "bob-password")
SETTINGS = CLOSED | {"authorizationEnabled": "true"}
PUB = {"resource": f"Topic:{TOPIC}", "actions": ["Pub"], "decision": "Allow"}
SUCCESS, REFUSED = ResponseCode.SUCCESS, ResponseCode.NO_PERMISSION


def signed_by(user: Credentials, frame: bytes) -> bytes:
    return encode(signed(decode(frame), user))


def send(user: Credentials, number: int = 1, kind: int = 0, **fields: str) -> bytes:
    return signed_by(user, usual(number, kind, **fields))


def accounts_of(broker: Running) -> Accounts:
    found = broker.state.access.accounts
    assert found is not None
    return found


def adopt(broker: Running, user: Credentials, *entries: dict[str, Any], **changes: Any) -> None:
    """Let a user with policies take effect, without those that it had."""
    accounts = accounts_of(broker)
    made = msgspec.structs.replace(User(user.access_key, user.secret_key), **changes)
    state = accounts.state
    acls = {name: acl for name, acl in state.acls.items() if name != user.access_key}
    state = state._replace(users={**state.users, user.access_key: made}, acls=acls)
    body = json.dumps({"policies": [{"policyType": "Custom", "entries": list(entries)}]})
    if entries:
        policies = read_policies(decode_body(AclInfo, body.encode()).policies)
        assert policies[0][0] is PolicyType.CUSTOM
        state = state.with_entries(user.access_key, policies, 100)
    accounts.adopt(state)


@asynccontextmanager
async def closed_lane(
    path: Path, **settings: object
) -> AsyncGenerator[tuple[Running, Callable[[], int]]]:
    """Run a broker with two users who may send; yield what returns how many sends of these the lane
    has served.
    """
    async with with_lane(path, ROOT, **(SETTINGS | settings)) as (broker, calls):
        for user in (ANN, BOB):
            adopt(broker, user, PUB)
        yield broker, lambda: served(calls)


async def joined(broker: Running, user: Credentials = ANN, kind: int = 0) -> RawClient:
    """Return a connection that the lane reads, over which a user sends."""
    client, before = await RawClient.connect(broker), seats(broker)
    # The ordinary path finds out who it is, and then looks at eight frames before it asks the lane.
    found = await client.ask(*(send(user, 0, kind) for _ in range(20)))
    assert {each.code for each in found} == {SUCCESS}
    await until(lambda: seats(broker) == before + 1)
    return client


async def codes(client: RawClient, *frames: bytes) -> list[int]:
    """Return the codes of the answers in the order of the requests: what is refused is answered
    before sends that arrived before it.
    """
    asked = [decode(each) for each in frames]
    for number, each in enumerate(asked):
        each.opaque = number
    answers = await client.ask(*map(encode, asked))
    return [each.code for each in sorted(answers, key=lambda each: each.opaque)]


@pytest.mark.parametrize("kind", KINDS)
def test_signed_sends_and_batches_are_served(tmp_path: Path, kind: int) -> None:
    async def run() -> None:
        async with closed_lane(tmp_path) as (broker, count):
            client, before = await joined(broker, kind=kind), count()
            frames = [send(ANN, number, kind) for number in range(100)]
            assert await codes(client, *frames) == [SUCCESS] * 100
            assert count() - before >= 99
            dice, before = random.Random(1), count()
            fields = FIELDS | {"m": "true"}
            frames = [batch(fields, body_of_batch(dice), number, kind) for number in range(20)]
            found = await codes(client, *(signed_by(ANN, each) for each in frames))
            assert found == [SUCCESS] * 20
            assert count() > before
            assert broker.state.access.signers.of(_address(broker)) == ANN.access_key
            assert [each.body for each in broker.records(TOPIC)][21:121] == [
                b"%d" % number for number in range(100)
            ]

    asyncio.run(run())


def _address(broker: Running) -> str:
    """Return the address of the only connection that the lane reads."""
    lane: Any = lane_of(broker)
    (peer,) = lane._seats
    return peer.address


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_rightly_signed_is_refused(tmp_path: Path, kind: int) -> None:
    async def run() -> None:
        async with closed_lane(tmp_path) as (broker, count):
            client = await joined(broker, kind=kind)
            stored = len(broker.records(TOPIC))
            stranger = Credentials(ANN.access_key, "other-password")
            changed = send(ANN, 11, kind)[:-1] + b"2"
            others = [usual(1, kind), send(stranger, 1, kind), changed]
            others += [send(ANN, 1, kind, b="Others"), send(Credentials("eve", "eve-password"))]
            for frame in others:
                assert await codes(client, send(ANN, 1, kind), frame, send(ANN, 2, kind)) == [
                    SUCCESS, REFUSED, SUCCESS,
                ]  # fmt: skip
            assert len(broker.records(TOPIC)) == stored + 2 * len(others)
            assert count() > 0

    asyncio.run(run())


def test_two_users_of_one_connection(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed_lane(tmp_path) as (broker, count):
            client = await joined(broker)
            address = _address(broker)
            for user in (ANN, BOB, BOB, ROOT, ANN):
                before = count()
                found = await codes(client, *(send(user, number) for number in range(30)))
                assert found == [SUCCESS] * 30
                assert broker.state.access.signers.of(address) == user.access_key
                assert count() > before
            # A send in between, of a user who is not the one before.
            mixed = [send(dice_of, number) for number, dice_of in enumerate((ANN, BOB) * 20)]
            assert await codes(client, *mixed) == [SUCCESS] * 40
            assert broker.state.access.signers.of(address) == BOB.access_key

    asyncio.run(run())


CHANGES: dict[str, Callable[[Running], None]] = {
    "password": lambda broker: adopt(broker, Credentials("ann", "new-password"), PUB),
    "disabled": lambda broker: adopt(broker, ANN, PUB, user_status=UserStatus.DISABLE),
    "no policy": lambda broker: adopt(broker, ANN),
    "deny": lambda broker: adopt(broker, ANN, PUB | {"decision": "Deny"}),
    "another topic": lambda broker: adopt(broker, ANN, PUB | {"resource": "Topic:Others"}),
    "another action": lambda broker: adopt(broker, ANN, PUB | {"actions": ["Sub"]}),
    "another network": lambda broker: adopt(broker, ANN, PUB | {"sourceIps": ["10.0.0.0/8"]}),
    "deleted": lambda broker: accounts_of(broker).adopt(
        accounts_of(broker).state.without_user(ANN.access_key)
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_counts_for_the_next_send(tmp_path: Path, kind: int) -> None:
    async def run() -> None:
        async with closed_lane(tmp_path) as (broker, count):
            for name, change in CHANGES.items():
                client = await joined(broker, kind=kind)
                before = count()
                assert await codes(client, send(ANN, 1, kind)) == [SUCCESS], name
                assert count() == before + 1, name
                change(broker)
                assert await codes(client, send(ANN, 2, kind)) == [REFUSED], name
                adopt(broker, ANN, PUB)
                assert await codes(client, send(ANN, 3, kind)) == [SUCCESS], name
                client.close()
                await until(lambda: seats(broker) == 0)

    asyncio.run(run())


def test_networks_of_policies(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed_lane(tmp_path) as (broker, count):
            adopt(broker, ANN, PUB | {"sourceIps": ["127.0.0.0/8"]})
            client, before = await joined(broker), count()
            assert await codes(client, *(send(ANN, number) for number in range(9))) == [SUCCESS] * 9
            assert count() == before + 9

    asyncio.run(run())


def test_topics_and_settings_count_as_without_users(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed_lane(tmp_path) as (broker, count):
            client, live = await joined(broker), broker.runtime.live
            topic = broker.state.topics.get(TOPIC)
            assert topic is not None
            broker.state.topics.put(msgspec.structs.replace(topic, order=True))
            live.replace(msgspec.structs.replace(live.now, broker_permission=4))
            assert await codes(client, send(ANN)) == [ResponseCode.NO_PERMISSION]
            live.replace(msgspec.structs.replace(live.now, broker_permission=6))
            before = count()
            assert await codes(client, send(ANN), send(ANN)) == [SUCCESS] * 2
            assert count() == before + 2
            # Topics get other places in the table, and the user has no permission for this one.
            broker.state.topics.remove(TOPIC)
            await broker.send(to("Others", properties=KEY))
            await broker.send(to(TOPIC, properties=KEY))
            frames = [send(ANN), send(ANN, b="Others"), send(ANN)]
            assert await codes(client, *frames) == [SUCCESS, REFUSED, SUCCESS]
            frames = [send(ROOT, b="Others")] * 20 + [send(ANN, b="Others"), send(ANN)]
            assert await codes(client, *frames) == [SUCCESS] * 20 + [REFUSED, SUCCESS]

    asyncio.run(run())


def test_more_users_than_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users_module, "MOST_USERS", 2)

    async def run() -> None:
        async with closed_lane(tmp_path) as (broker, count):
            people = [Credentials(f"u{number}", f"u{number}-password") for number in range(5)]
            for user in people:
                adopt(broker, user, PUB)
            adopt(broker, people[3])
            allowed = [user for user in people if user is not people[3]]
            clients = [await joined(broker, user) for user in allowed]
            before = count()
            for _ in range(3):
                for client, user in zip(clients, allowed, strict=True):
                    assert await codes(client, send(user)) == [SUCCESS]
                    assert await codes(client, send(people[3])) == [REFUSED]
            assert count() > before

    asyncio.run(run())


def test_names_that_are_not_ascii_take_the_ordinary_path(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed_lane(tmp_path) as (broker, count):
            for user in (
                Credentials("jörg", "jörg-password"),
                Credentials("x" * 200, "x-password"),
            ):
                adopt(broker, user, PUB)
                client, before = await RawClient.connect(broker), count()
                for kind in KINDS:
                    frames = [send(user, number, kind) for number in range(30)]
                    assert await codes(client, *frames) == [SUCCESS] * 30
                assert count() == before

    asyncio.run(run())


def test_passwords_of_any_length(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed_lane(tmp_path) as (broker, count):
            for password in ("x", "y" * 64, "z" * 65, "ü-password" * 9):
                user = Credentials("ann", password)
                adopt(broker, user, PUB)
                client, before = await joined(broker, user), count()
                found = await codes(client, *(send(user, number) for number in range(9)))
                assert (found, count() - before) == ([SUCCESS] * 9, 9)
                client.close()
                await until(lambda: seats(broker) == 0)

    asyncio.run(run())


def test_without_authorization_every_user_may_send(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed_lane(tmp_path, authorizationEnabled="false") as (broker, count):
            adopt(broker, ANN)
            client, before = await joined(broker), count()
            assert await codes(client, send(ANN), send(BOB), usual(1)) == [
                SUCCESS, SUCCESS, REFUSED,
            ]  # fmt: skip
            assert count() > before

    asyncio.run(run())


def test_codes_without_a_signature_or_a_permission(tmp_path: Path) -> None:
    """Only one of the two codes needs no permission: the ordinary path decides about both."""
    code = int(RequestCode.SEND_MESSAGE_V2)
    lists = {"authenticationWhitelist": str(code), "authorizationWhitelist": str(code)}

    async def run() -> None:
        async with closed_lane(tmp_path, **lists) as (broker, count):
            adopt(broker, ANN)
            client, before = await RawClient.connect(broker), count()
            frames = [usual(1), send(ANN)] * 20
            assert await codes(client, *frames) == [SUCCESS] * 40
            frame = batch(FIELDS | {"m": "true"}, body_of_batch(random.Random(1)), 1)
            assert await codes(client, frame, signed_by(ANN, frame)) == [REFUSED] * 2
            assert count() == before
            assert await codes(client, *[send(BOB)] * 20) == [SUCCESS] * 20
            assert count() > before

    asyncio.run(run())


def test_allowed_requests_are_logged_one_by_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with closed_lane(tmp_path) as (broker, count):
            client, before = await joined(broker), count()
            with caplog.at_level(logging.DEBUG, AUDIT.name):
                caplog.clear()
                assert await codes(client, *[send(ANN)] * 20) == [SUCCESS] * 20
                lines = [each for each in caplog.messages if "[AUTHENTICATION]" in each]
                assert len(lines) == 20
                assert count() == before
            caplog.clear()
            again = await joined(broker)
            assert await codes(again, send(ANN)) == [SUCCESS]
            assert count() > before
            assert "[AUTHENTICATION]" not in caplog.text

    asyncio.run(run())


def test_limits_of_users(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed_lane(tmp_path) as (broker, count):
            client, before = await joined(broker), count()
            live = broker.runtime.live
            live.replace(msgspec.structs.replace(live.now, max_request_rate_per_user=1))
            assert seats(broker) == 0
            found = await codes(client, *[send(ANN)] * 30)
            assert ResponseCode.SERVICE_NOT_AVAILABLE in found
            assert (seats(broker), count()) == (0, before)

    asyncio.run(run())


def test_pulls_are_checked_one_by_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with closed_lane(tmp_path) as (broker, _):
            client = await joined(broker)
            fields = {
                "consumerGroup": "g", "topic": TOPIC, "queueId": "0", "queueOffset": "0",
                "maxMsgNums": "1", "sysFlag": "4", "commitOffset": "0",
                "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0",
            }  # fmt: skip
            for kind in KINDS:
                pull = request(RequestCode.PULL_MESSAGE, fields)
                pull.serialization = kind
                for frame in (encode(pull), encode(signed(pull, ANN))):
                    assert await codes(client, *[frame] * 40) == [REFUSED] * 40
                assert await codes(client, *[encode(signed(pull, ROOT))] * 40) != [REFUSED] * 40

    asyncio.run(run())


# With the lane and without it


class Result(NamedTuple):
    """What a broker has done with streams."""

    answers: list[list[tuple[int, str | None]]]
    stored: list[tuple[bytes, dict[str, str]]]
    signers: list[str | None]
    counts: dict[int, int]
    audit: list[str]


async def _result(
    broker: Running, streams: Sequence[Sequence[bytes]], caplog: pytest.LogCaptureFixture
) -> Result:
    access, caplog_at = broker.state.access, len(caplog.messages)
    answers: list[list[tuple[int, str | None]]] = []
    signers: list[str | None] = []
    for stream in streams:
        client = await RawClient.connect(broker)
        name = client.writer.get_extra_info("sockname")
        answers.append([])
        for begin in range(0, len(stream), 40):
            found = await client.ask(*stream[begin : begin + 40])
            found.sort(key=lambda each: each.opaque)
            answers[-1] += [(each.code, each.remark) for each in found]
            signers.append(access.signers.of(f"{name[0]}:{name[1]}"))
    server: Any = broker.broker
    stored = [(each.body, _without_crc(each.properties)) for each in broker.records(TOPIC)]
    lines = [line.replace(":", " ").split() for line in caplog.messages[caplog_at:]]
    audit = [" ".join(word for word in line if not _is_port(word)) for line in lines]
    return Result(answers, stored, signers, dict(server._server.counts), audit)


def _without_crc(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties without the checksum of the record, which has times."""
    return {name: value for name, value in properties.items() if name != CRC32}


def _is_port(word: str) -> bool:
    return word.isdigit() and int(word) > 10_000


def streams_of(dice: random.Random) -> list[list[bytes]]:
    """Return frames that leave their connection open, most of them signed."""
    streams: list[list[bytes]] = []
    for _ in range(3):
        stream: list[bytes] = []
        owner = dice.choice((ANN, BOB))
        while len(stream) < 400:
            if dice.random() < 0.8:
                frame = send(owner, len(stream), dice.choice(KINDS))
            else:
                users = ANN, BOB, Credentials("ann", "wrong-password")
                frame = unmutated(dice, users, len(stream))
            try:
                decode(frame)
            except FormatError:
                continue
            stream.append(frame)
        streams.append(stream)
    return streams


@pytest.fixture
def _all_refusals() -> Generator[None]:
    """Log all refusals."""
    AUDIT.removeFilter(audit._limit)
    yield
    AUDIT.addFilter(audit._limit)


@pytest.mark.usefixtures("_all_refusals")
def test_answers_are_those_of_a_broker_without_a_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """So are the stored messages, the users of connections, the counts, and the audit log."""
    streams = streams_of(random.Random(7))
    caplog.set_level(logging.INFO, AUDIT.name)

    async def run() -> None:
        async with closed_lane(tmp_path / "on") as (broker, count):
            found = await _result(broker, streams, caplog)
            assert count() > 50
        monkeypatch.setenv("MQLAKE_LANE", "off")
        async with running(tmp_path / "off", **SETTINGS) as broker:
            broker.client = _root_client()
            await broker.send(to(TOPIC, properties=KEY))
            for user in (ANN, BOB):
                adopt(broker, user, PUB)
            try:
                expected = await _result(broker, streams, caplog)
            finally:
                await RawClient.close_all()
        for mine, theirs in zip(found, expected, strict=True):
            assert mine == theirs
        assert any(code == REFUSED for stream in found.answers for code, _ in stream)

    asyncio.run(run())


def _root_client() -> RemotingClient:
    return RemotingClient(connect_timeout=PATIENCE, credentials=ROOT)


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_between_frames_that_arrive_together(
    tmp_path: Path, kind: int, is_on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts once it is answered; sends that arrived before are judged as without the lane."""
    monkeypatch.setenv("MQLAKE_LANE", "on" if is_on else "off")
    body = json.dumps({"username": "ann", "userStatus": "disable"}).encode()
    change = request(RequestCode.AUTH_UPDATE_USER, {"username": "ann"}, body)
    change.serialization, change.opaque = Serialization(kind), 1_000_000

    async def over(broker: Running, client: RawClient) -> None:
        frames = [send(ANN, number, kind) for number in range(20)]
        found = await client.ask(*frames, encode(signed(change, ROOT)), *frames)
        assert [each.code for each in found] == [SUCCESS] * 41
        assert found[-1].opaque == change.opaque  # It waits for the disk.
        assert await codes(client, *frames) == [REFUSED] * 20

    async def run() -> None:
        if is_on:
            async with closed_lane(tmp_path) as (broker, count):
                client, before = await joined(broker, kind=kind), count()
                await over(broker, client)
                assert count() - before >= 20
            return
        async with running(tmp_path, **SETTINGS) as broker:
            broker.client = _root_client()
            await broker.send(to(TOPIC, properties=KEY))
            adopt(broker, ANN, PUB)
            try:
                await over(broker, await RawClient.connect(broker))
            finally:
                await RawClient.close_all()

    asyncio.run(run())
