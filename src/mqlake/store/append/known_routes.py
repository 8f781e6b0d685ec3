"""What many records have in common, computed once (`dispatch.writing.puts.make_route`)."""

from __future__ import annotations

from typing import TypeVar

from mqlake.dispatch.writing.puts import make_route
from mqlake.store.append.checks import AppendChecks
from mqlake.store.live_settings import Current
from mqlake.store.settings import StoreSettings

_MOST = 1 << 16
"""Maximum number of routes. Beyond it, all are dropped."""

K = TypeVar("K")


class KnownRoutes(dict[K, bytes]):
    """The routes of records, each made when it is first needed.

    Attributes:
        checks: what messages must satisfy.
    """

    def __init__(self, checks: AppendChecks, settings: Current[StoreSettings]) -> None:
        super().__init__()
        self.checks = checks
        # The checks have subscribed before: their caches are cleared by then.
        settings.on_change(self.clear, "max_message_size", "auto_message_version_on_topic_len")

    def __missing__(self, key: K) -> bytes:
        route = self.make(key)
        if len(self) >= _MOST:
            self.clear()
        self[key] = route
        return route

    def make(self, key: K) -> bytes:
        """Return the route of records with a key.

        Raises:
            Refusal: they must not be put.
        """
        raise NotImplementedError

    def route(self, topic: str, queue_id: int, born_host: bytes | None = None) -> bytes:
        """Return the route of records of a queue, from the store's own host or another one."""
        checks, part = self.checks, self.checks.topic(topic)
        return make_route(
            queue_id=queue_id,
            magic=part.magic,
            part=part.data,
            longest_body=checks.longest_body,
            crc_size=checks.crc_size,
            host=checks.store_host,
            born_host=born_host,
        )
