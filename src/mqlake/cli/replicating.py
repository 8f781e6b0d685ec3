"""`mqlake follow --replica-of`: copies of masters, and the table that their messages go to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mqlake.cli.access import chosen
from mqlake.cli.follow_metrics import served
from mqlake.cli.output import draw, timed, write_json

if TYPE_CHECKING:
    from mqlake.lake.options import FollowOptions
    from mqlake.replica.options import ReplicaOptions
    from mqlake.spark.follow.job import FollowReport
    from mqlake.spark.follow.metrics import FollowProgress
    from mqlake.spark.session import Session

_LOOK = 0.2
"""Seconds between two looks whether a copy has begun."""


@dataclass(frozen=True)
class Masters:
    """Which masters are copied.

    Attributes:
        names: broker names, or "host:port" of masters.
        cluster: all masters of this cluster, as of the start.
        name_servers: "host:port", several separated by `;`.
        keep_hours, keep_bytes, has_ha_tls: see `ReplicaOptions`.
    """

    names: tuple[str, ...]
    cluster: str | None
    name_servers: str
    keep_hours: int | None = None
    keep_bytes: int | None = None
    has_ha_tls: bool = True

    def __bool__(self) -> bool:
        return bool(self.names or self.cluster)

    def found(self) -> dict[str, str]:
        """Return what is copied, and the directory of the copy in STORE; "" for STORE itself.

        Raises:
            MqlakeError: no name server answers, or the cluster has no master.
        """
        if self.cluster is not None:
            import asyncio

            return {name: name for name in asyncio.run(self._of_cluster(self.cluster))}
        if len(self.names) == 1:
            return {self.names[0]: ""}
        return {name: name.replace(":", "_") for name in self.names}

    async def _of_cluster(self, cluster: str) -> list[str]:
        from mqlake.client.cluster import Cluster
        from mqlake.formats.file_name import check_topic_name

        access = chosen()
        async with Cluster(
            self.name_servers, tls=access.tls, credentials=access.credentials
        ) as found:
            names = [broker.name for broker in await found.brokers(cluster)]
        for name in names:  # each becomes a directory
            check_topic_name(name)
        return names


def follow_masters(
    options: FollowOptions,
    masters: Masters,
    spark_master: str | None,
    progress: bool | None,
    *,
    pages: tuple[str, int] | None,
    json: bool,
) -> int:
    """Copy masters, and bring the messages of the copies into one table; return the exit code."""
    import msgspec

    from mqlake.cli.following import stop_on_signals
    from mqlake.cli.progress import START, tell_compilation
    from mqlake.cli.progress import progress as shown
    from mqlake.lake.follow.log_positions import committed_offset
    from mqlake.replica.background import ReplicaThread
    from mqlake.spark.follow.metrics import FollowProgress
    from mqlake.spark.session import open_session

    start = time.perf_counter()
    copied: dict[ReplicaOptions, Callable[[], int]] = {}
    queries: list[FollowOptions] = []
    for name, directory in masters.found().items():
        query = msgspec.structs.replace(
            options, store=options.store / directory, checkpoint=options.checkpoint / directory
        )
        queries.append(query)
        copied[_replica(name, query, masters)] = lambda query=query: committed_offset(query)
    options.store.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        copies = stack.enter_context(ReplicaThread(copied, stop, once=options.once))
        report = stack.enter_context(shown(progress, START))
        tell_compilation()
        session = stack.enter_context(open_session(spark_master, progress=report))
        session.check_shared(options.out, options.store)
        if options.once:
            copies.wait()
        followed = [FollowProgress(str(query.store), report) for query in queries]
        stack.enter_context(served(pages, followed, copies.samples))
        reports = _follow_all(session, queries, stop, followed)
    copies.check()
    seconds = time.perf_counter() - start
    for each in reports:
        if json:
            write_json(timed(each, seconds))
        else:
            from mqlake.cli.views.follow import view

            draw(view(each, seconds))
    return 0


def _replica(name: str, query: FollowOptions, masters: Masters) -> ReplicaOptions:
    from mqlake.replica.options import ReplicaOptions

    access = chosen()
    return ReplicaOptions(
        tls=access.tls,
        credentials=access.credentials,
        master=name,
        store=query.store,
        name_servers=masters.name_servers,
        keep_hours=masters.keep_hours,
        keep_bytes=masters.keep_bytes,
        has_ha_tls=masters.has_ha_tls,
        is_patient=not query.once,
    )


def _follow_all(
    session: Session,
    queries: list[FollowOptions],
    stop: threading.Event,
    followed: Sequence[FollowProgress],
) -> list[FollowReport]:
    """Follow each copy in a thread of its own; one commits to the table at a time.

    Raises:
        MqlakeError: one of them failed, which stops the others.
    """
    from mqlake.spark.follow.job import follow

    turn, failures = threading.Lock(), list[BaseException]()
    reports: dict[Path, FollowReport] = {}

    def run(query: FollowOptions, noted: FollowProgress) -> None:
        try:
            if (named := _begun(query, stop)) is not None:
                reports[query.store] = follow(
                    session, named, stop, noted.report, turn, noted.totals
                )
        except BaseException as error:  # noqa: BLE001 (raised below, in the main thread)
            failures.append(error)
            stop.set()

    pairs = zip(queries, followed, strict=True)
    threads = [threading.Thread(target=run, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(_LOOK)  # signals are handled in between
    if failures:
        raise failures[0]
    return [reports[query.store] for query in queries if query.store in reports]


def _begun(query: FollowOptions, stop: threading.Event) -> FollowOptions | None:
    """Return a query with the name of its broker, once its copy has begun; None if it is too late.

    The name is in the copy's own settings.
    """
    import msgspec

    from mqlake.storage.local import LocalDirectory
    from mqlake.store.config.named_broker import named_broker

    while (name := named_broker(LocalDirectory(query.store))) is None:
        if stop.wait(_LOOK):
            return None
    return msgspec.structs.replace(query, source={**query.source, "brokerName": name})
