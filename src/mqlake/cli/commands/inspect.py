"""Show a store's topics, offsets, files and shutdown state.

JSON: `store`, `lastStopWasClean` (null while a broker has the store open), `owner` and
`abortProcess` (process ids), `dialect`, `detectedBy`; `commitLog` with `minOffset`, `maxOffset`
(where RocketMQ would continue to write), `files` (`name`, `offset`, `bytes`), `fileSize`,
`endReason` (what is at the end, null if it is clean), `damage` (objects with `file`, `offset`,
`bytes`, `reason`), `beyondEnd`, the good records past the end (`records`, `bytes`, `ranges`), and
`cutOff`, the parts that recovery has cut off and kept (`path`, `offset`, `bytes`, `records`);
`queueFileSize`; `topics`, each with `topic`, `queues` (`queueId`, `minOffset`, `maxOffset`),
`readQueueNums`, `writeQueueNums`; `index`, a list of files with `name`, their header
(`beginTimestamp`, `endTimestamp`, `beginPhysicalOffset`, `endPhysicalOffset`, `slotCount`,
`indexCount`) and sizes (`hashSlots`, `maxEntries`); `checkpoint` (`physicMsgTimestamp`,
`logicsMsgTimestamp`, `indexMsgTimestamp`, `masterFlushedOffset`, `confirmPhysicalOffset`,
`logicsPhysicalOffset`; null if absent); `config` (`topics`, a number, and `consumerGroups`, each
with `group` and its `offsets` by topic and queue); `damage` of the derived files.

The exit code is 0 even if there is damage; use `verify` to check a store.
"""

from __future__ import annotations

from mqlake.cli import options as shared
from mqlake.cli.output import draw, write_json
from mqlake.cli.places import open_place

EXAMPLES = (
    "mqlake inspect /data/rocketmq/store",
    "mqlake inspect /data/rocketmq/store --json",
)


def inspect(
    store: shared.Place,
    archive: shared.Archive = None,
    override: shared.ObjectStoreSettings = None,
    json: shared.Json = False,
) -> int:
    """Show a store's topics, offsets, files and shutdown state."""
    from mqlake.store.reader import StoreReader

    with StoreReader.open(open_place(store, archive, override)) as reader:
        report = reader.inspect()
    if json:
        write_json(report)
    else:
        from mqlake.cli.views.inspect import view

        draw(view(report))
    return 0
