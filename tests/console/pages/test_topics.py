"""Topics: list, create, change, delete them, and send a test message."""

from __future__ import annotations

import asyncio
import logging

import pytest

from mqlake.testing.running_broker import RunningBroker
from tests.console.site import Site, site, words

SETTINGS = {"cluster": "DefaultCluster", "read": "4", "write": "4", "permission": "6"}


async def create(visitor: Site, topic: str, **changed: str) -> None:
    made = await visitor.post("/topics/save", {**SETTINGS, "topic": topic, "new": "1", **changed})
    assert made.status_code == 200, words(made)


def test_creates_a_topic_and_lists_it(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            await create(visitor, "created", type="FIFO")
            shown = words(await visitor.get("/topics/topic?topic=created"))
            assert "message.type=FIFO" in shown
            listed = words(await visitor.get("/topics?q=CREAT"))
            assert "created normal FIFO 4 read and write 1" in listed

    asyncio.run(visit())


def test_a_topic_that_exists_is_not_created_again(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            await create(visitor, "twice")
            again = await visitor.post(
                "/topics/save", {**SETTINGS, "topic": "twice", "new": "1", "read": "1"}
            )
            assert again.status_code == 409
            assert "exists already" in words(again)

    asyncio.run(visit())


def test_changes_the_settings(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            await create(visitor, "changed")
            shown = await visitor.post(
                "/topics/save",
                {**SETTINGS, "topic": "changed", "permission": "4", "write": "2"},
            )
            assert "broker-a 4 2 read no" in words(shown)
            assert "changed was changed on broker-a." in words(shown)

    asyncio.run(visit())


def test_a_test_message_is_stored_and_counted(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            await create(visitor, "sent", write="1", read="1")
            shown = await visitor.post(
                "/topics/send", {"topic": "sent", "body": "<b>hello</b>", "keys": "k", "tags": "t"}
            )
            assert "The message was stored in queue 0, queue offset 0." in words(shown)
            assert "broker-a 0 0 1 1" in words(shown)

    asyncio.run(visit())


def test_deletes_a_topic_only_if_its_name_is_typed(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            await create(visitor, "deleted")
            form = {"topic": "deleted", "cluster": "DefaultCluster"}
            assert (await visitor.post("/topics/delete", {**form, "typed": "x"})).status_code == 400
            assert "deleted" in words(await visitor.get("/topics"))
            gone = words(await visitor.post("/topics/delete", {**form, "typed": "deleted"}))
            assert "deleted was deleted from broker-a." in gone
            assert "deleted normal" not in gone
            assert (await visitor.get("/topics/topic?topic=deleted")).status_code == 404

    asyncio.run(visit())


def test_pages_and_filters_on_the_server(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            for number in range(101):
                await create(visitor, f"many-{number:03d}", read="1", write="1")
            first = await visitor.get("/topics?q=many-")
            assert "101 in all, page 1 of 2" in words(first)
            assert "many-099" in first.text
            assert "many-100" not in first.text
            second = await visitor.get("/topics?q=many-&page=2")
            assert "many-100" in second.text
            assert "many-099" not in second.text
            for odd in ("0", "-1", "x", "99999999999999999999", "٣"):
                assert (await visitor.get("/topics")).status_code == 200
                assert (await visitor.get(f"/topics?page={odd}")).status_code == 200

    asyncio.run(visit())


def test_faults_of_forms_are_named(running: RunningBroker) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            for changed, said in (
                ({"topic": ""}, "Name is missing"),
                ({"topic": "a b"}, "a b"),
                ({"read": "0"}, "Read queues is 0, and must be from 1 to 1024"),
                ({"write": "many"}, "Write queues is 'many', and must be a number"),
                ({"type": "ODD"}, "'ODD'"),
            ):
                form = {**SETTINGS, "topic": "faulty", "new": "1", **changed}
                refused = await visitor.post("/topics/save", form)
                assert refused.status_code == 400
                assert said in words(refused)

    asyncio.run(visit())


def test_each_change_is_one_line_in_the_log(
    running: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    async def visit() -> None:
        async with site(running.name_server) as visitor:
            await create(visitor, "audited")
            form = {"topic": "audited\nforged user=root", "cluster": "c", "typed": "x"}
            await visitor.post("/topics/delete", form)

    with caplog.at_level(logging.INFO, "mqlake.console.audit"):
        asyncio.run(visit())
    lines = [record.getMessage() for record in caplog.records if "audit" in record.name]
    assert len(lines) == 2
    assert lines[0].startswith("audit topics.save user=- from=127.0.0.1 fields=")
    assert lines[0].endswith('result="done"')
    assert "\n" not in lines[1]
    assert "failed: The name that you typed" in lines[1]
