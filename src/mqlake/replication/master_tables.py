"""Request a master's tables.

Upstream: `BrokerOuterAPI`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Final, Generic, NamedTuple, TypeVar

from mqlake.formats.config import DataVersion
from mqlake.formats.config.subscription_group import SubscriptionGroup
from mqlake.formats.config.topic_queue_mapping import TopicQueueMapping
from mqlake.formats.config.topics import Topic
from mqlake.formats.incarnations import EndedIncarnations
from mqlake.protocol.body import encode_body
from mqlake.protocol.codes import RequestCode
from mqlake.protocol.command import Body, Command, request
from mqlake.protocol.errors import BodyError
from mqlake.protocol.header import Header
from mqlake.protocol.headers.offsets import OffsetHeader, QueueHeader
from mqlake.protocol.headers.slaves import AllGroupsHeader, AllTopicsHeader, TablePartHeader
from mqlake.protocol.signature import Credentials
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.slices import Job, Slices
from mqlake.remoting.tls.options import ClientTls
from mqlake.replication import table_answers
from mqlake.replication.master_log import MasterLog, ask
from mqlake.replication.table_answers import GROUPS, MAPPINGS, TOPICS, Members
from mqlake.replication.table_parts import MOST_PARTS

T = TypeVar("T")

_SECONDS, _PAGED_SECONDS = 3.0, 30.0
_A_PAGE: Final = 2000
_MOST_PAGES: Final = 1000
_MOST_RESTARTS: Final = 5


class _TablePage(NamedTuple, Generic[T]):
    """A page of a table; `total` is None from releases that return everything in one response."""

    entries: dict[str, T]
    version: DataVersion
    members: Members
    total: int | None


class MasterTopics(NamedTuple):
    """A master's topics and static topics."""

    topics: dict[str, Topic]
    version: DataVersion
    mappings: dict[str, TopicQueueMapping]
    mapping_version: DataVersion
    incarnations: EndedIncarnations | None
    """Which topics and groups were deleted; None from RocketMQ's brokers."""


class GroupTables(NamedTuple):
    """A master's consumer groups, and which topics they may not read."""

    groups: dict[str, SubscriptionGroup]
    forbidden: dict[str, dict[str, int]]
    version: DataVersion


class MasterClient:
    """Sends requests to one master at a time; long responses are read in slices of the event loop.

    All methods raise MqlakeError if the master does not answer, refuses, or returns something
    that is not such a table.

    Args:
        credentials: sign the requests; None for a master without authentication.
    """

    def __init__(
        self,
        slices: Slices,
        tls: ClientTls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self._slices = slices
        self._client = RemotingClient(tls=tls, credentials=credentials)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def log(self, address: str) -> MasterLog:
        """Return where the commit log begins and ends."""
        return await ask(self._client, address)

    async def topics(self, address: str) -> MasterTopics:
        """Return all topics."""
        mappings: dict[str, TopicQueueMapping] = {}
        mapping_version, incarnations = DataVersion(), None

        def read(members: Members) -> Job[dict[str, Topic]]:
            nonlocal mapping_version, incarnations
            incarnations = table_answers.incarnations(members) or incarnations
            if "topicQueueMappingDetailMap" in members:  # Since 5.0.
                mappings.update((yield from table_answers.named(members, MAPPINGS)))
                mapping_version = table_answers.version(members, "mappingDataVersion")
            return (yield from table_answers.named(members, TOPICS))

        async def ask(first: int, version: str) -> Command:
            header = AllTopicsHeader(
                topic_seq=first, max_topic_num=_A_PAGE, data_version=version, incarnations=True
            )
            return await self._ask(address, RequestCode.GET_ALL_TOPIC_CONFIG, header)

        topics, version = await self._paged(ask, "totalTopicNum", read, mappings.clear)
        return MasterTopics(topics, version, mappings, mapping_version, incarnations)

    async def groups(self, address: str) -> GroupTables:
        """Return all consumer groups."""
        forbidden: dict[str, dict[str, int]] = {}

        def read(members: Members) -> Job[dict[str, SubscriptionGroup]]:
            if "forbiddenTable" in members:  # Since 4.9.
                forbidden.update((yield from table_answers.forbidden(members)))
            return (yield from table_answers.named(members, GROUPS))

        async def ask(first: int, version: str) -> Command:
            header = AllGroupsHeader(group_seq=first, max_group_num=_A_PAGE, data_version=version)
            return await self._ask(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, header)

        groups, version = await self._paged(ask, "totalGroupNum", read, forbidden.clear)
        return GroupTables(groups, forbidden, version)

    async def consumer_offsets(self, address: str) -> tuple[dict[str, dict[int, int]], DataVersion]:
        """Return all committed offsets by `topic@group`; they have this version or a later one."""
        table, version, number = dict[str, dict[int, int]](), DataVersion(), 0
        async for body in self.parts(address, RequestCode.GET_ALL_CONSUMER_OFFSET):
            members = await self._slices.finish(table_answers.read_members(body))
            table |= await self._slices.finish(table_answers.consumer_offsets(members))
            if not number:
                version = table_answers.version(members)
            number += 1
        return table, version

    async def delay_offsets(self, address: str) -> tuple[dict[int, int], DataVersion]:
        """Return how far each delay level was delivered."""
        answer = await self._ask(address, RequestCode.GET_ALL_DELAY_OFFSET)
        members = await self._slices.finish(table_answers.read_members(answer.body))
        return table_answers.delay_offsets(members), _version_or_none(members)

    async def max_offset(self, address: str, topic: str, queue_id: int) -> int:
        """Return the queue offset after a queue's last message; 0 if there is no such queue."""
        header = QueueHeader(topic=topic, queue_id=queue_id)
        call = request(RequestCode.GET_MAX_OFFSET, header)
        answer = await self._client.call(address, call, _SECONDS)
        return answer.header(OffsetHeader).offset

    async def body(self, address: str, code: RequestCode) -> Body:
        """Return the body of a response."""
        return (await self._ask(address, code)).body

    async def parts(self, address: str, code: RequestCode) -> AsyncIterator[Body]:
        """Yield the parts of a table; the whole table if the master is RocketMQ's."""
        answer = await self._ask(address, code, TablePartHeader(part=0))
        yield answer.body
        count = _number(answer, "parts") or 1
        for number in range(1, min(count, MOST_PARTS)):
            header = TablePartHeader(part=number, parts=count)
            yield (await self._ask(address, code, header)).body

    async def _ask(self, address: str, code: RequestCode, header: Header | None = None) -> Command:
        seconds = _SECONDS if header is None else _PAGED_SECONDS
        return await self._client.call(address, request(code, header), seconds)

    async def _paged(
        self,
        ask: Callable[[int, str], Awaitable[Command]],
        total: str,
        read: Callable[[Members], Job[dict[str, T]]],
        forget: Callable[[], object],
    ) -> tuple[dict[str, T], DataVersion]:
        """Return a whole table; start again if its version changes.

        Args:
            ask: requests the entries of a version from a number on.
            total: the response field with the total number of entries.
            read: returns the entries of a response.
            forget: called at each new start.
        """
        found, version, restarts = dict[str, T](), None, 0
        for _ in range(_MOST_PAGES):
            wanted = "" if version is None else encode_body(version).decode()
            page = await self._page(await ask(len(found), wanted), total, read)
            if version is not None and page.version != version:
                if (restarts := restarts + 1) > _MOST_RESTARTS:
                    break
                found.clear()
                forget()
                version = None
                continue
            before, version = len(found), page.version
            found |= page.entries
            if page.total is None or len(found) >= page.total:
                return found, version
            if len(found) == before:
                raise BodyError(f"{total} is {page.total}, and there are {before}")
        raise BodyError(f"the table changes faster than it comes, or has over {_MOST_PAGES} pages")

    async def _page(
        self, answer: Command, total: str, read: Callable[[Members], Job[dict[str, T]]]
    ) -> _TablePage[T]:
        def job() -> Generator[None, None, _TablePage[T]]:
            members = yield from table_answers.read_members(answer.body)
            entries = yield from read(members)
            return _TablePage(
                entries, table_answers.version(members), members, _number(answer, total)
            )

        return await self._slices.finish(job())


def _number(answer: Command, name: str) -> int | None:
    text = answer.fields.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > len(str(table_answers.MOST_ENTRIES)):
        raise BodyError(f"{name} is {text[:100]!r}")
    return int(text)


def _version_or_none(members: Members) -> DataVersion:
    """Return the version of delay offsets, which releases before 5.0 do not send."""
    return table_answers.version(members) if "dataVersion" in members else DataVersion()
