"""Run scenarios with the clients of all languages against one side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from mqlake.admin import groups, topics
from mqlake.admin.admin import Admin
from mqlake.errors import MqlakeError
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from tests.peer.grpc.driver import COMMANDS, Client, ClientMissingError
from tests.peer.grpc.rig import Observation, Rig, Scenario
from tests.peer.grpc.scenarios import calls, lite, pushing, receiving, refused, restarts, sending
from tests.peer.grpc.sides import BROKER, LITE_SIDES, SIDES, Side

SCENARIOS: Mapping[str, Scenario] = {
    each.name: each
    for each in (
        *sending.SCENARIOS,
        *receiving.SCENARIOS,
        *pushing.SCENARIOS,
        *refused.SCENARIOS,
        *calls.SCENARIOS,
        *restarts.SCENARIOS,
        *lite.SCENARIOS,
    )
}
LIMIT = 150
"""Seconds for one scenario."""

Observations = dict[str, dict[str, Observation]]
"""By the scenario and the language."""


async def of_sides(
    directory: Path,
    sides: Sequence[str],
    scenarios: Collection[Scenario],
    languages: Sequence[str] = tuple(COMMANDS),
) -> dict[str, Observations]:
    """Run scenarios on several sides at the same time.

    Raises:
        JavaMissingError: RocketMQ's servers cannot be built.
    """
    wanted: list[tuple[str, Callable[[Path], Side], Path, list[Scenario]]] = []
    for name in sides:
        lite = [each for each in scenarios if each.is_lite and name in LITE_SIDES]
        rest = [each for each in scenarios if each not in lite]
        for prefix, of_kind, chosen in (("", SIDES, rest), ("lite-", LITE_SIDES, lite)):
            if chosen:
                place = directory / f"{prefix}{name.replace(' ', '-')}"
                wanted.append((name, of_kind[name], place, chosen))
    seen = await asyncio.gather(
        *(
            observe(side(place / "servers"), place, chosen, languages)
            for _, side, place, chosen in wanted
        )
    )
    found: dict[str, Observations] = {name: {} for name in sides}
    for (name, *_), observations in zip(wanted, seen, strict=True):
        found[name] |= observations
    return found


async def observe(
    side: Side,
    directory: Path,
    scenarios: Collection[Scenario],
    languages: Sequence[str] = tuple(COMMANDS),
) -> Observations:
    """Run all scenarios at the same time; return what the clients saw.

    A language whose client is missing is left out.

    Raises:
        JavaMissingError: RocketMQ's servers cannot be built.
    """
    found: Observations = {each.name: {} for each in scenarios}
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, side.kill)
        await asyncio.to_thread(side.start)
        admin = await stack.enter_async_context(Admin(side.names))
        await _registered(admin)
        await _prepare(admin, scenarios, languages)

        clients: list[Client] = []

        async def start(language: str) -> None:
            try:
                client = await Client.start(language, side.endpoint, directory / language)
            except ClientMissingError:
                return
            stack.push_async_callback(client.close)
            clients.append(client)

        async def run(client: Client, scenario: Scenario, restart: Restart) -> None:
            seen = await _run(Rig(client, scenario, admin, restart.wait))
            found[scenario.name][client.language] = seen

        await asyncio.gather(*map(start, languages))
        for restarts in (False, True):
            pairs = [
                (client, scenario)
                for client in clients
                for scenario in scenarios
                if scenario.restarts == restarts and client.language in scenario.languages
            ]
            restart = Restart(side, len(pairs))
            await asyncio.gather(*(run(*pair, restart) for pair in pairs))
    return found


class Restart:
    """Kills a server and starts it again, once all scenarios wait for that."""

    def __init__(self, side: Side, count: int) -> None:
        self._side, self._left = side, count
        self._is_done = asyncio.Event()

    async def wait(self) -> None:
        """Return once the server runs again."""
        self._left -= 1
        if not self._left:
            await asyncio.to_thread(self._side.restart)
            self._is_done.set()
        await self._is_done.wait()


async def _run(rig: Rig) -> Observation:
    try:
        async with asyncio.timeout(LIMIT):
            observation = await rig.run()
    except Exception as error:  # noqa: BLE001 (it is what happened)
        return {"failure": f"{type(error).__name__}: {error}"}
    await rig.close()
    return observation


async def _registered(admin: Admin) -> None:
    """Wait until the name server knows the broker: one that listens need not be registered yet."""
    while True:
        try:
            await admin.brokers(None, BROKER)
        except MqlakeError:
            await asyncio.sleep(0.05)
        else:
            return


async def _prepare(admin: Admin, scenarios: Collection[Scenario], languages: Sequence[str]) -> None:
    for scenario in scenarios:
        for language in set(languages) & set(scenario.languages):
            topic = Topic(
                topic_name=scenario.topic_of(language),
                read_queue_nums=scenario.queues,
                write_queue_nums=scenario.queues,
            )
            await topics.update(admin, topic, None, BROKER, f"+message.type={scenario.kind}")
            for name in ("", *scenario.groups):
                group = SubscriptionGroup(
                    group_name=scenario.group_of(language, name),
                    consume_message_orderly=scenario.is_orderly,
                    retry_max_times=scenario.retries,
                    attributes=scenario.attributes_for(language),
                )
                await groups.update(admin, group, None, BROKER)
