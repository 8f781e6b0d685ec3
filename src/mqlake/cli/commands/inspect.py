"""Show a store's topics, offsets, files and shutdown state.

JSON: `store`, `lastStopWasClean` (null while a broker has the store open), `owner` (id of the
process that has the store open), `abortProcess` (process id in the file `abort`), `dialect`,
`detectedBy` (the evidence for the dialect), `commitLog`, `queueFileSize`, `topics`, `index`,
`checkpoint`, `config`, `damage` (of the derived files).

`commitLog` has `minOffset`, `maxOffset` (where RocketMQ would continue to write), `files` (`name`,
`offset`, `bytes`), `fileSize`, `endReason` (what is at the log's end, null if the end is clean),
`damage` (of the log), `beyondEnd` (good records past the end: `records`, `bytes`, `ranges`) and
`cutOff` (parts that recovery has cut off and kept: `path`, `offset`, `bytes`, `records`). Both
lists of `damage` contain objects with `file`, `offset`, `bytes`, `reason`.

Each of `topics` has `topic`, `queues` (`queueId`, `minOffset`, `maxOffset`), `readQueueNums` and
`writeQueueNums`. Each of `index` describes a file: `name`, the header (`beginTimestamp`,
`endTimestamp`, `beginPhysicalOffset`, `endPhysicalOffset`, `slotCount`, `indexCount`) and sizes
(`hashSlots`, `maxEntries`). `checkpoint` has `physicMsgTimestamp`, `logicsMsgTimestamp`,
`indexMsgTimestamp`, `masterFlushedOffset`, `confirmPhysicalOffset` and `logicsPhysicalOffset`; it
is null if there is no readable checkpoint. `config` has `topics` (their number),
`consumerGroups`, each with `group` and its `offsets` by topic and queue, and `deletedBefore`: by
topic that was deleted, the physical offset before which its messages are deleted.

The exit code is 0 even if there is damage; use `verify` to check a store.
"""

from __future__ import annotations

from mqlake.cli import options as shared
from mqlake.cli.output import draw, write_json
from mqlake.cli.places import open_place
from mqlake.cli.progress import reported_reading

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

    with (
        reported_reading(store),
        StoreReader.open(open_place(store, archive, override)) as reader,
    ):
        report = reader.inspect()
    if json:
        write_json(report)
    else:
        from mqlake.cli.views.inspect import view

        draw(view(report))
    return 0
