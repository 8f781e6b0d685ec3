"""A name server, which shares its event loop with a broker here."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from pathlib import Path

from mqlake.formats.config.topics import Topic
from mqlake.protocol.bodies.register import RegisterBody, TopicConfigs
from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.headers.namesrv import (
    GetKVListByNamespaceHeader,
    GetRouteInfoHeader,
    KVConfigHeader,
    PutKVConfigHeader,
    RegisterBrokerHeader,
)
from tests.attacks.broker_process import attacked
from tests.attacks.flood import Attacker, attackers
from tests.attacks.size import part

TOPICS, VALUES = part(50_000), part(3000)
"""What each broker registers, and what is put into each namespace."""
LIMITS = {
    "max_topic_nums": part(200_000),
    "max_kv_config_nums": part(10_000),
    "max_kv_config_size": part(4 << 20),
}
ROUTES = part(10_000)
"""Questions on each connection."""


def registration(number: int, *, compressed: bool = False) -> Command:
    """Return the registration of a broker that has very many topics."""
    topics = {name: Topic(name, 4, 4) for name in (f"T{number}-{at}" for at in range(TOPICS))}
    body = RegisterBody(TopicConfigs(topics))
    data = body.compress() if compressed else body.encode()
    header = RegisterBrokerHeader(
        broker_name=f"attacker-{number}",
        broker_addr=f"10.0.0.{number}:1",
        cluster_name="attackers",
        ha_server_addr="",
        broker_id=0,
        compressed=compressed,
        body_crc32=zlib.crc32(data) & 0x7FFFFFFF,
    )
    return request(RequestCode.REGISTER_BROKER, header, data)


async def ask_all(them: list[Attacker], code: int, count: int = 3) -> None:
    for one in them:
        await one.send(request(code) for _ in range(count))
    for one in them:
        await one.answered()


def test_huge_tables_of_topics(tmp_path: Path) -> None:
    with attacked(
        tmp_path, f"Register brokers with {TOPICS:,} topics each at the name server", LIMITS
    ) as attack:

        async def main() -> None:
            async with attackers(attack, 6, port=attack.name_server_port) as them:
                for number, one in enumerate(them):
                    await one.send([registration(number, compressed=bool(number % 2))])
                for one in them:
                    await one.answered()
                remarks = "".join(remark for one in them for remark in one.remarks)
                assert "maxTopicNums" in remarks
                for number, one in enumerate(them):
                    await one.send([registration(number)])
                await ask_all(them, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
                await ask_all(them, RequestCode.GET_BROKER_CLUSTER_INFO)
            # And all of it is forgotten with the connections.
            async with attackers(attack, 1, port=attack.name_server_port) as (one,):
                await one.send([registration(9)])
                await one.answered()

        asyncio.run(main())
    attack.toll.check()


def test_questions_about_unknown_topics(tmp_path: Path) -> None:
    with attacked(
        tmp_path, f"Ask the name server for {10 * ROUTES:,} routes of unknown topics"
    ) as attack:

        async def main() -> None:
            async with attackers(attack, 10, port=attack.name_server_port) as them:
                for one in them:
                    await one.send(routes(ROUTES))
                for one in them:
                    await one.answered()
                    assert one.codes == {ResponseCode.TOPIC_NOT_EXIST: ROUTES}

        asyncio.run(main())
    attack.toll.check()


def routes(count: int) -> Iterator[Command]:
    return (
        request(
            RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoHeader(topic="x" * 255 + str(number))
        )
        for number in range(count)
    )


def test_floods_of_kv_configuration(tmp_path: Path) -> None:
    with attacked(tmp_path, "Fill the name server's KV configuration", LIMITS) as attack:

        async def main() -> None:
            async with attackers(attack, 5, port=attack.name_server_port) as them:
                for number, one in enumerate(them):
                    await one.send(values(f"attacker-{number}", VALUES))
                for one in them:
                    await one.answered()
                remarks = "".join(remark for one in them for remark in one.remarks)
                assert "maxKvConfigSize" in remarks
                lists = GetKVListByNamespaceHeader(namespace="attacker-0")
                for one in them:
                    await one.send(
                        request(RequestCode.GET_KVLIST_BY_NAMESPACE, lists) for _ in range(20)
                    )
                    await one.send(
                        request(
                            RequestCode.DELETE_KV_CONFIG,
                            KVConfigHeader(namespace="attacker-0", key=f"key-{number}"),
                        )
                        for number in range(VALUES)
                    )
                for one in them:
                    await one.answered()

        asyncio.run(main())
    attack.toll.check()


def values(namespace: str, count: int) -> Iterator[Command]:
    for number in range(count):
        header = PutKVConfigHeader(namespace=namespace, key=f"key-{number}", value="x" * 500)
        yield request(RequestCode.PUT_KV_CONFIG, header)
