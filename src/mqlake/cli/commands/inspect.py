"""Show what a store holds and how it was left.

JSON: `store`, `lastStopWasClean` (null while a broker has the store open), `owner` and
`abortProcess` (process ids), `dialect`, `detectedBy`; `commitLog` with `minOffset`, `maxOffset`
(where RocketMQ would go on writing), `files` (`name`, `offset`, `bytes`), `fileSize`, `endReason`
(what stands at the end, null where it is clean), `damage` (objects with `file`, `offset`, `bytes`,
`reason`), `beyondEnd`, the good records behind the end (`records`, `bytes`, `ranges`), and
`cutOff`, the parts that recovery has cut off and keeps aside (`path`, `offset`, `bytes`,
`records`);
`queueFileSize`; `topics`, each with `topic`, `queues` (`queueId`, `minOffset`, `maxOffset`),
`readQueueNums`, `writeQueueNums`; `index`, a list of files with `name`, their header
(`beginTimestamp`, `endTimestamp`, `beginPhysicalOffset`, `endPhysicalOffset`, `slotCount`,
`indexCount`) and sizes (`hashSlots`, `maxEntries`); `checkpoint` (`physicMsgTimestamp`,
`logicsMsgTimestamp`, `indexMsgTimestamp`, `masterFlushedOffset`, `confirmPhysicalOffset`,
`logicsPhysicalOffset`; null where there is none); `config` (`topics`, a
number, and `consumerGroups`, each with `group` and its `offsets` by topic and queue); `damage` of
the derived files.

Exit code 0 also where there is damage: `verify` is the command that judges.
"""

from __future__ import annotations

from mqlake.cli import options as shared
from mqlake.cli.output import draw, write_json

EXAMPLES = (
    "mqlake inspect /data/rocketmq/store",
    "mqlake inspect /data/rocketmq/store --json",
)


def inspect(store: shared.Store, json: shared.Json = False) -> int:
    """Show what a store holds and how it was left."""
    from mqlake.store.reader import StoreReader

    with StoreReader.open(store) as reader:
        report = reader.inspect()
    if json:
        write_json(report)
    else:
        from mqlake.cli.views.inspect import view

        draw(view(report))
    return 0
