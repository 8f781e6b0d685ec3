"""Compare what a streaming query subscribes to with what its checkpoint was written for.

A checkpoint contains one physical offset for all topics. If a query now subscribes to more, it
would skip the earlier messages before that offset that it did not select then.
"""

from __future__ import annotations

import msgspec

from mqlake.errors import StoreError
from mqlake.query.reading.log import logger
from mqlake.query.reading.queue_json import by_topic
from mqlake.query.store.options import StoreReadOptions
from mqlake.query.store.position import StorePosition

log = logger()


def described(options: StoreReadOptions) -> str:
    """Return the options that select messages as JSON; equal choices give equal texts."""
    chosen = {
        "subscribe": sorted(set(options.topics)) if options.topics is not None else None,
        "subscribePattern": options.topic_pattern,
        "assign": by_topic(options.queues) if options.queues is not None else None,
        "systemTopics": None if options.system_topics else False,
        "tags": sorted(set(options.tags)) if options.tags is not None else None,
        "keys": sorted(set(options.keys)) if options.keys is not None else None,
    }
    given = {name: value for name, value in chosen.items() if value is not None}
    return msgspec.json.encode(given, order="sorted").decode()


def check_subscription(options: StoreReadOptions, position: StorePosition) -> None:
    """Compare a checkpoint's subscription with the query's; older checkpoints have none.

    Raises:
        StoreError: they differ, and the query does not tolerate that.
    """
    before, now = position.subscription, described(options)
    if before is None or before == now:
        return
    what = (
        f"{options.path}: the checkpoint was written for the subscription {before}, and the query "
        f"now has {now}: messages before physical offset {position.physical_offset} that were not "
        "subscribed to are not read"
    )
    if options.fail_on_subscription_change:
        raise StoreError(
            f"{what}; start the query with a new checkpoint to read them, or set "
            "failOnSubscriptionChange to false to continue without them"
        )
    log.warning("%s", what)
