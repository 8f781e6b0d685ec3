"""`Copy as mqlake admin`: each copied command exists, and does what the form beside it does."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import typer
from starlette.routing import Route

from mqlake.admin import Admin, groups, topics
from mqlake.cli.app import app, run
from mqlake.client import (
    ConsumedMessage,
    Consumer,
    ConsumerSettings,
    Credentials,
    Message,
    Producer,
)
from mqlake.client.access import ClientAccess
from mqlake.console.access.changes import Posted
from mqlake.console.pages import SECTIONS
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topics import Topic
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Command
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.tls.options import ClientTls, Verify
from mqlake.testing import broker
from mqlake.testing.running_broker import RunningBroker
from tests.auth.closed import CLOSED, ROOT
from tests.console.site import Site, site
from tests.tls.certificates import Authority
from tests.until import until

CLUSTER = "DefaultCluster"
BUSY, ODD, DOOMED = "busy", "odd", "doomed"
NAMED = re.compile(r"[0-9A-F]{32}|\b1\d{12}\b")
"""Message ids and times, which differ each time."""
OF_BROKERS = ',"createdByAdmin":true'
"""What a broker notes in a group's settings, whoever changes them: the form sends it back."""
OF_OTHERS = {"HEART_BEAT", "UPDATE_CONSUMER_OFFSET", "UNREGISTER_CLIENT", "REGISTER_BROKER"}
"""What the group's member and the broker send, which are in this process, too."""
READS = ("GET_", "QUERY_", "VIEW_", "SEARCH_", "PULL_", "POP_", "LITE_PULL_")


class PageForm(NamedTuple):
    """A form that changes something, and the command that is copied beside it."""

    action: str
    fields: dict[str, str]
    commands: list[str]


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self.commands: list[str] = []
        self._fields: dict[str, str] | None = None
        self._name = ""
        self._option: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "data-copy" in given:
            self.commands.append(given["data-copy"])
            if self.forms and not self.forms[-1].commands:
                self.forms[-1].commands.append(given["data-copy"])
        if tag == "form" and given.get("method") == "post":
            self._fields = {}
            self.forms.append(PageForm(given["action"], self._fields, []))
        if self._fields is None:
            return
        name = given.get("name", "")
        if tag == "input" and name and ("checked" in given or given.get("type") != "checkbox"):
            self._fields[name] = given.get("value", "")
        elif tag in ("select", "textarea"):
            self._name = name
        elif tag == "option":
            self._option = given.get("value")
            self._choose("selected" in given, self._option)

    def _choose(self, is_selected: bool, value: str | None) -> None:
        assert self._fields is not None
        if value is not None and (is_selected or self._name not in self._fields):
            self._fields[self._name] = value

    def handle_data(self, data: str) -> None:
        if self._fields is not None and self.lasttag == "option" and self._option is None:
            self._choose(False, data.strip() or None)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._fields = None


def forms_of(text: str) -> _Forms:
    found = _Forms()
    found.feed(text)
    return found


def parse(line: str) -> None:
    """Parse a command line as the program does, without running it."""
    program, *words = shlex.split(line)
    assert program == "mqlake"
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        name, *words = words
        assert name in command.commands, line
        command = command.commands[name]
    command.make_context(command.name, words)


class Case(NamedTuple):
    """A form, and what somebody types.

    Attributes:
        words: what somebody changes in the command.
        is_linked: whether the form is on the page of the first message that `page` lists.
    """

    page: str
    action: str
    typed: Mapping[str, str] = {}
    words: Mapping[str, str] = {}
    is_linked: bool = False


CASES = (
    Case("/topics/new", "/topics/save", {"topic": "Made"}, {"TOPIC": "Made"}),
    Case("/topics/topic?topic=Plain", "/topics/save"),
    Case(f"/topics/topic?topic={ODD}", "/topics/save"),
    Case("/topics/topic?topic=Plain", "/topics/send", {"body": "hello"}),
    Case(f"/topics/topic?topic={DOOMED}", "/topics/delete", {"typed": DOOMED}),
    Case("/groups/new", "/groups/save", {"group": "made"}, {"GROUP": "made"}),
    Case(f"/groups/group?group={BUSY}", "/groups/save"),
    Case(f"/groups/group?group={ODD}", "/groups/save"),
    Case(f"/groups/group?group={DOOMED}", "/groups/delete", {"typed": DOOMED}),
    Case(f"/groups/group?group={BUSY}", "/groups/reset", {"time": "1000"}, {"now": "1000"}),
    Case(f"/groups/group?group={BUSY}", "/groups/skip"),
    Case(f"/groups/group?group={BUSY}", "/groups/copy", {"target": ODD}, {"GROUP": ODD}),
    Case(f"/messages?topic=%25DLQ%25{BUSY}", "/messages/resend", is_linked=True),
    Case(
        "/messages?topic=Plain",
        "/messages/consume",
        {"group": BUSY},
        {"GROUP": BUSY},
        is_linked=True,
    ),
    Case(f"/messages?topic=%25DLQ%25{BUSY}", "/messages/consume", is_linked=True),
    Case("/delayed?topic=Later", "/delayed/recall"),
)
VERIFICATION = {"/store/verify/start", "/store/verify/cancel"}


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    """A broker whose topics, groups and messages all forms are about."""
    with broker(recallMessageEnable=True) as found:
        asyncio.run(fill(found.name_server))
        yield found


async def fill(names: str) -> None:
    async with Admin(names) as admin:
        for name in ("Plain", DOOMED, "Later", f"%DLQ%{BUSY}"):
            topic = Topic(topic_name=name, read_queue_nums=1, write_queue_nums=1)
            await topics.update(admin, topic, CLUSTER, None)
        odd = Topic(topic_name=ODD, read_queue_nums=2, write_queue_nums=3, perm=0, order=True)
        await topics.update(admin, odd, CLUSTER, None)
        for name in (BUSY, DOOMED):
            await groups.update(admin, SubscriptionGroup(group_name=name), CLUSTER, None)
        odd_group = SubscriptionGroup(
            group_name=ODD,
            consume_enable=False,
            consume_message_orderly=True,
            retry_max_times=3,
            retry_queue_nums=2,
        )
        await groups.update(admin, odd_group, CLUSTER, None)
    async with Producer(names, timeout=60) as producer:
        await producer.send(Message(topic="Plain", body=b"x"))
        in_an_hour = int(time.time() * 1000) + 3_600_000
        await producer.send(Message(topic="Later", body=b"x", deliver_at=in_an_hour))
        dead = {"RETRY_TOPIC": "Plain"}
        await producer.send(Message(topic=f"%DLQ%{BUSY}", body=b"dead", properties=dead))


@asynccontextmanager
async def consuming(names: str) -> AsyncIterator[None]:
    """Have a member of BUSY, which has handled a message, and committed its offset."""
    is_handled = asyncio.Event()

    async def handle(message: ConsumedMessage) -> None:
        is_handled.set()

    settings = ConsumerSettings(consume_from="first")
    async with Consumer(names, BUSY, "Plain", settings=settings) as consumer:
        task = asyncio.create_task(consumer.run(handle))
        async with Producer(names, timeout=60) as producer:
            await producer.send(Message(topic="Plain", body=b"x"))
        await is_handled.wait()
        await consumer.commit()
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


class Recorded:
    """The requests that change something, without what differs each time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._found: list[tuple[str, str, str]] = []
        request = RemotingClient.request

        async def noted(
            client: RemotingClient, address: str, command: Command, *seconds: float
        ) -> Command:
            name = RequestCode(command.code).name
            if not name.startswith(READS) and name not in OF_OTHERS:
                texts = [f"{field}={text}" for field, text in sorted(command.fields.items())]
                texts.append(bytes(command.body).decode().replace(OF_BROKERS, ""))
                self._found.append((address, name, NAMED.sub("*", " ".join(texts))))
            return await request(client, address, command, *seconds)

        monkeypatch.setattr(RemotingClient, "request", noted)

    def take(self) -> list[tuple[str, str, str]]:
        """Return the requests since the last call."""
        found, self._found = sorted(self._found), []
        return found


async def form_on(visitor: Site, case: Case) -> PageForm:
    """Return the form of a case, once its page has it."""
    found: PageForm | None = None

    async def is_there() -> bool:
        nonlocal found
        visitor.console.view(None).kept.forget()
        text = (await visitor.get(case.page)).text
        if case.is_linked:
            link = re.search(r'href="(/messages/message\?[^"]*)"', text)
            text = (await visitor.get(link[1].replace("&amp;", "&"))).text if link else ""
        matching = [each for each in forms_of(text).forms if each.action == case.action]
        found = next((each for each in matching if each.commands), None)
        return found is not None

    await until(is_there)
    assert found is not None
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.action} {case.page}")
def test_a_command_sends_what_its_form_sends(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch, case: Case
) -> None:
    recorded = Recorded(monkeypatch)

    async def compare() -> None:
        async with site(running.name_server) as visitor, consuming(running.name_server):
            form = await form_on(visitor, case)
            recorded.take()
            await visitor.post(case.action, {**form.fields, **case.typed})
            by_form = recorded.take()
            words = [case.words.get(word, word) for word in shlex.split(form.commands[0])[1:]]
            await asyncio.to_thread(run, words)
            assert by_form
            assert recorded.take() == by_form

    asyncio.run(compare())


def changes() -> set[str]:
    """Return the paths of all actions."""
    return {
        route.path
        for section in SECTIONS
        for route in section.routes()
        if isinstance(route, Route)
        and isinstance(posted := getattr(route.endpoint, "__self__", None), Posted)
        and posted.action
    }


def test_every_action_is_compared() -> None:
    assert {case.action for case in CASES} == changes() - VERIFICATION


def test_every_copied_command_exists(running: RunningBroker) -> None:
    """Also those of pages that change nothing."""
    searches = ("by=time", "by=key&key=k", "by=unique&key=k", "by=offset&broker=broker-a&offset=0")
    queries: dict[str, tuple[str, ...]] = {
        "/cluster/broker": (f"address={running.address}",),
        "/topics/topic": ("topic=Plain", f"topic={ODD}"),
        "/groups/group": (f"group={BUSY}", f"group={ODD}"),
        "/messages": ("", "by=id", *(f"topic=Plain&{each}" for each in searches)),
        "/messages/tail": ("topic=Plain",),
        "/messages/message": (
            "topic=Plain&broker=broker-a&queue=0&offset=0",
            f"topic=%25DLQ%25{BUSY}&broker=broker-a&queue=0&offset=0",
        ),
    }
    paths = [
        route.path
        for section in SECTIONS
        for route in section.routes()
        if isinstance(route, Route) and "GET" in (route.methods or ())
    ]
    store = Path(running.store)

    async def visit() -> None:
        async with site(running.name_server, stores=(store,)) as visitor:
            for path in paths:
                for query in queries.get(path, ("",)):
                    shown = await visitor.get(f"{path}?{query}")
                    assert shown.status_code == 200, shown.text
                    found = forms_of(shown.text)
                    for line in found.commands:
                        parse(line)
                    for form in found.forms:
                        assert form.commands or form.action not in changes(), (path, form)

    asyncio.run(visit())


def test_verify_is_copied_as_the_job_runs_it(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    async def visit() -> None:
        async with site(running.name_server, stores=(Path(running.store),)) as visitor:
            jobs = visitor.console.jobs
            monkeypatch.setattr(jobs, "start", lambda kind, subject, argv: started.append(argv))
            (form,) = forms_of((await visitor.get("/store/verify")).text).forms
            await visitor.post(form.action, form.fields)
            assert [["mqlake", *each] for each in started] == [shlex.split(form.commands[0])]

    asyncio.run(visit())


def test_commands_have_the_options_of_tls_and_the_user_of_the_console(
    running: RunningBroker,
) -> None:
    tls = ClientTls(ca="own ca.pem", cert="/c.pem", key="/k.pem", verify=Verify.CA)
    credentials = Credentials("o'neil", "secret-of-oneil")
    ca = str(Path("own ca.pem").absolute())

    async def visit() -> None:
        async with site(running.name_server) as visitor:
            console = visitor.console
            console.view(None)  # The cluster itself needs neither.
            access = ClientAccess(tls=tls, credentials=credentials)
            console.options = msgspec.structs.replace(console.options, access=access)
            shown = await visitor.get("/topics")
            (line,) = forms_of(shown.text).commands
            assert shlex.split(line) == [
                "MQLAKE_ACCESS_KEY=o'neil",
                *("mqlake", "--tls-ca", ca),
                *("--tls-cert", "/c.pem", "--tls-key", "/k.pem", "--tls-verify", "ca"),
                *("admin", "topicList", "-n", running.name_server),
            ]
            assert credentials.secret_key not in shown.text

    asyncio.run(visit())


def test_a_copied_command_reaches_a_cluster_with_tls_and_users(authority: Authority) -> None:
    closed = authority.settings() | CLOSED | {"authorizationEnabled": "true"}
    with broker(**closed) as running:
        lines = asyncio.run(copied(running, ClientAccess(tls=ClientTls(ca=authority.ca))))
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        environment = {**os.environ, "PATH": path, "MQLAKE_SECRET_KEY": ROOT.secret_key}
        pasted = subprocess.run(
            ["bash", "-c", lines[0]], env=environment, capture_output=True, text=True, check=False
        )
    assert lines[0].startswith("MQLAKE_ACCESS_KEY=root mqlake --tls-ca /")
    assert pasted.returncode == 0, pasted.stderr
    assert "broker-a" in pasted.stdout


async def copied(running: RunningBroker, access: ClientAccess) -> list[str]:
    """Return the commands that the first page offers to the super user."""
    async with site(running.name_server, login=True, access=access) as visitor:
        shown = await visitor.log_in(ROOT.access_key, ROOT.secret_key)
        return forms_of(shown.text).commands
