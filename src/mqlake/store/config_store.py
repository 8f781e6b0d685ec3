"""The tables of a broker in `config/`, in memory and on disk.

Other files in the directory are not changed. Upstream: `BrokerController`, which persists them at
these intervals.
"""

from __future__ import annotations

from typing import Self

from mqlake.errors import DiskError
from mqlake.formats.config import (
    ConsumerOffsets,
    DelayOffsets,
    SubscriptionGroups,
    TopicQueueMappings,
    Topics,
)
from mqlake.storage.clock import Clock
from mqlake.storage.protocol import OwnedDirectory
from mqlake.store.config.config_entries import GroupTable, TopicMappingTable, TopicTable
from mqlake.store.config.config_file import ConfigFile
from mqlake.store.config.consumer_offsets import ConsumerOffsetTable
from mqlake.store.config.delay_offsets import DelayOffsetTable
from mqlake.store.incarnations.table import OwnedIncarnations
from mqlake.store.live_settings import Current
from mqlake.store.services import Service
from mqlake.store.settings import StoreSettings

# Milliseconds. Topics and groups change seldom, and their changes should be durable soon.
_SOON = 100


class ConfigStore:
    """Topics, consumer groups, offsets, delay offsets and static topics of one store.

    `incarnations` says which records of deleted topics and groups are dead.
    """

    def __init__(
        self,
        settings: Current[StoreSettings],
        *,
        topics: TopicTable,
        groups: GroupTable,
        consumer_offsets: ConsumerOffsetTable,
        delay_offsets: DelayOffsetTable,
        static_topics: TopicMappingTable,
        incarnations: OwnedIncarnations,
    ) -> None:
        self._settings = settings
        self.topics, self.groups = topics, groups
        self.consumer_offsets, self.delay_offsets = consumer_offsets, delay_offsets
        self.static_topics, self.incarnations = static_topics, incarnations

    @classmethod
    def load(
        cls,
        directory: OwnedDirectory,
        settings: Current[StoreSettings],
        clock: Clock,
        incarnations: OwnedIncarnations | None = None,
    ) -> Self:
        """Read the files of a store's configuration.

        Args:
            incarnations: the table of incarnations if it was read already.

        Raises:
            StoreError: a file and its backup are both damaged, or cannot be read.
        """
        return cls(
            settings,
            topics=TopicTable(ConfigFile[Topics].load(directory, Topics, clock)),
            groups=GroupTable(
                ConfigFile[SubscriptionGroups].load(directory, SubscriptionGroups, clock)
            ),
            consumer_offsets=ConsumerOffsetTable(
                ConfigFile[ConsumerOffsets].load(directory, ConsumerOffsets, clock)
            ),
            delay_offsets=DelayOffsetTable(
                ConfigFile[DelayOffsets].load(directory, DelayOffsets, clock)
            ),
            static_topics=TopicMappingTable(
                ConfigFile[TopicQueueMappings].load(directory, TopicQueueMappings, clock)
            ),
            incarnations=OwnedIncarnations.load(directory, clock)
            if incarnations is None
            else incarnations,
        )

    def services(self) -> list[Service]:
        """Return services that write each table at its interval, if it has changed.

        A table that the disk refuses stays changed, and is tried again at its next interval.
        """
        settings = self._settings
        return [
            Service(_SOON, self.incarnations.write, "incarnations"),
            Service(_SOON, self.topics.write, "topics"),
            Service(_SOON, self.groups.write, "groups"),
            Service(_SOON, self.static_topics.write, "staticTopics"),
            Service(
                lambda: settings.now.flush_consumer_offset_interval,
                self.consumer_offsets.write,
                "consumerOffsets",
            ),
            Service(
                lambda: settings.now.flush_delay_offset_interval,
                self.delay_offsets.write,
                "delayOffsets",
            ),
        ]

    def persist(self) -> None:
        """Write all tables that have changed; return once they are durable.

        Raises:
            DiskError: the system refused a table; all others were written.
        """
        failures: list[DiskError] = []
        for table in (
            self.incarnations,
            self.topics,
            self.groups,
            self.consumer_offsets,
            self.delay_offsets,
            self.static_topics,
        ):
            try:
                if (pending := table.write()) is not None:
                    pending.complete()
            except DiskError as error:
                failures.append(error)
        if failures:
            raise failures[0]
