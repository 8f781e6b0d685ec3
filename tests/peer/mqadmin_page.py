"""docs/mqadmin.md: which commands of mqadmin print the same with mqlake as with RocketMQ."""

from __future__ import annotations

from pathlib import Path

from tests.peer.mqadmin_matrix import entries

PAGE = Path(__file__).parents[2] / "docs" / "mqadmin.md"

DIFFERENT: dict[str, str] = {}
"""The commands that print something else, and what."""

_HEAD = """\
# mqadmin

*For operators who manage mqlake's brokers and name servers with RocketMQ's own `mqadmin`.*

```
mqadmin topicStatus -t Orders -n 127.0.0.1:9876
```

The table has {all} command lines of RocketMQ 5.5.0's `mqadmin`. {same} of them print the same with
mqlake's broker as with Java's. The comparison covers everything that they print or export, except
addresses, times, ids, positions in the log, rates, settings and facts that only one broker has, and
lines about RocketMQ's RocksDB topics.

`{{broker}}` is the broker's address, `{{offset}}` and `{{unique}}` are the ids of a message,
`{{directory}}` is a directory of the test, and `{{reset}}` is a time.
`tests/peer/test_mqadmin.py` runs the commands and writes this page. `mqlake admin`
([admin.md](admin.md)) has the everyday commands without a JVM.

| command | output |
| --- | --- |
"""

_TAIL = """
A value that a setting does not allow is refused, and changes nothing
([broker-settings.md](broker-settings.md)).
Settings that are changed with `updateBrokerConfig` are saved in the file that was given with
`mqlake broker -c` or, if none was given, in the store ([broker.md](broker.md#settings)). RocketMQ
accepts changes of nearly all settings. mqlake refuses changes that take effect only at a restart
(names, ports, file sizes, `flushDiskType`).

The default of `inSyncReplicas` is 2; RocketMQ's is 1 ([replication.md](replication.md)).

Thresholds for cold data are saved and shown, but have no effect: mqlake reads through the page
cache, and does not limit reads of cold data.
"""


def page() -> str:
    """Return the page."""
    rows = [
        f"| `{entry.words}` | {DIFFERENT.get(entry.words, 'the same')} |" for entry in entries()
    ]
    head = _HEAD.format(same=len(rows) - len(DIFFERENT), all=len(rows))
    return head + "\n".join(rows) + "\n" + _TAIL
