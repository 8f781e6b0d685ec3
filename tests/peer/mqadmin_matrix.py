"""The commands of mqadmin whose answers are compared: RocketMQ's beside mqlake's.

They run in this order against either side; those of one stage at the same time. What is printed is
compared without what differs from run to run: addresses, times, ids, places in the log, rates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

TOPIC, TOPIC_2 = "MatrixTopic", "MatrixTopic2"
GROUP, GROUP_2, PRODUCERS = "G_matrix", "G_matrix2", "PG_matrix"
AT_ONCE = 14
"""Commands that run at the same time, each with clients of its own."""
CLUSTER, BROKER = "DefaultCluster", "broker-a"


class Side(Protocol):
    """What commands run against."""

    names: str
    broker: str


class Tools(Protocol):
    """What runs them: `tests.peer.rocketmq_client.Clients`."""

    def mqadmin(self, names: str, commands: list[list[str]]) -> list[str]: ...
    def hold(self, names: str, topic: str, group: str, producers: str) -> dict[str, str]: ...
    def let_go(self, names: str) -> None: ...


Tidy = Callable[[str], str]


def _sorted_lines(text: str) -> str:
    return "\n".join(sorted(text.splitlines()))


def _once(text: str) -> str:
    return "\n".join(sorted(set(text.splitlines())))


def _without_numbers(text: str) -> str:
    return _sorted_lines(re.sub(r"[-\d][\d.]*", "N", text))


def _names(text: str) -> str:
    """Keep what stands before a colon: which facts there are, without those of mqlake alone."""
    found = re.sub(r" *:( .*|$)", " : VALUE", text, flags=re.MULTILINE)
    return _sorted_lines(re.sub(_OWN_FACTS, "", found, flags=re.MULTILINE))


def _same_settings(recorded: str, printed: str) -> bool:
    """Compare the settings that both sides have, but for those that say where a side is."""
    theirs, ours = _settings(recorded), _settings(printed)
    common = theirs.keys() & ours.keys() - _PLACE_SETTINGS - _OWN_DEFAULTS
    return len(common) >= 10 and all(theirs[name] == ours[name] for name in common)


def _settings(text: str) -> dict[str, str]:
    pairs = (line.partition(" =") for line in text.splitlines() if " =" in line)
    return {name: value.strip() for name, _, value in pairs}


_OWN_FACTS = r"^.*\b(haTls|brokerVersion) : VALUE\n"
"""Lines about replication over TLS, which RocketMQ does not have, and what RocketMQ 4 has."""

# docs/replication.md, docs/lite-topics.md and docs/broker-settings.md say why.
_OWN_DEFAULTS = frozenset(
    (
        "allAckInSyncStateSet",
        "enableSingleTopicRegister",
        "inSyncReplicas",
        "maxLiteSubscriptionCount",
        "maxLmqConsumeQueueNum",
    )
)

_PLACE_SETTINGS = frozenset(
    (
        "bindAddress",
        "listenPort",
        "haListenPort",
        "brokerIP2",
        "rocketmqHome",
        "storePathCommitLog",
        "configStorePath",
        "kvConfigPath",
    )
)


class Entry(NamedTuple):
    """One command, how what it prints is tidied further, and how two such texts are compared."""

    words: str
    tidy: Tidy = str
    is_same: Callable[[str, str], bool] = str.__eq__


SETUP = (
    Entry("updateTopic -b {broker} -t MatrixTopic -r 4 -w 4"),
    Entry("updateTopic -c DefaultCluster -t MatrixTopic2 -r 2 -w 2"),
    Entry("updateSubGroup -b {broker} -g G_matrix -s true"),
)
STAGES: tuple[tuple[Entry, ...], ...] = (
    (
        Entry("clusterList", _without_numbers),
        Entry("clusterList -m", _without_numbers),
        Entry("topicList", _sorted_lines),
        Entry("topicList -c", _sorted_lines),
        Entry("topicRoute -t MatrixTopic"),
        Entry("topicStatus -t MatrixTopic"),
        Entry("topicClusterList -t MatrixTopic"),
        Entry("statsAll", _without_numbers),
        Entry("brokerStatus -b {broker}", _names),
        Entry("brokerStatus -c DefaultCluster", _names),
        Entry("getBrokerConfig -b {broker}", _sorted_lines, _same_settings),
        Entry("getNamesrvConfig", _sorted_lines, _same_settings),
        Entry("consumerProgress -g G_matrix"),
        Entry("consumerProgress", _without_numbers),
        Entry("consumerStatus -g G_matrix"),
        Entry("consumerConnection -g G_matrix"),
        Entry("producerConnection -g PG_matrix -t MatrixTopic"),
        Entry("producer -b {broker}", _once),
        Entry("brokerConsumeStats -b {broker}", _sorted_lines),
        Entry("getConsumerConfig -g G_matrix"),
        Entry("allocateMQ -t MatrixTopic -i 192.0.2.1,192.0.2.2"),
        Entry("haStatus -b {broker}"),
        Entry("exportMetadata -c DefaultCluster -f {directory}"),
        Entry("exportConfigs -c DefaultCluster -f {directory}"),
        Entry("exportMetrics -c DefaultCluster -f {directory}"),
        Entry("queryCq -t MatrixTopic -q 0 -i 0 -c 5 -b {broker}"),
        Entry("getColdDataFlowCtrInfo -b {broker}"),
        Entry("checkRocksdbCqWriteProgress -c DefaultCluster"),
    ),
    (
        Entry("queryMsgById -t MatrixTopic -i {offset}"),
        Entry("queryMsgById -t MatrixTopic -i {unique}"),
        Entry("queryMsgByKey -t MatrixTopic -k mk39"),
        Entry("queryMsgByKey -t MatrixTopic -k TagA -p T"),
        Entry("queryMsgByOffset -t MatrixTopic -b broker-a -i 3 -o 9"),
        Entry("queryMsgByUniqueKey -t MatrixTopic -i {unique}"),
        Entry("printMsg -t MatrixTopic", _sorted_lines),
        Entry("printMsgByQueue -t MatrixTopic -a broker-a -i 0 -p true -d true"),
        Entry("consumeMessage -t MatrixTopic -b broker-a -i 0 -o 0 -c 5"),
    ),
    (
        Entry("updateBrokerConfig -b {broker} -k traceOn -v false"),
        Entry("updateNamesrvConfig -k orderMessageEnable -v false"),
        Entry("updateTopicPerm -b {broker} -t MatrixTopic2 -p 4"),
        Entry("updateOrderConf -t MatrixTopic -m put -v broker-a:4"),
        Entry("sendMessage -t MatrixTopic -p hello -k hk -c TagA -b broker-a -i 2"),
        Entry("updateSubGroup -b {broker} -g G_matrix2"),
        Entry("updateKvConfig -s NS1 -k k1 -v v1"),
        Entry("updateColdDataFlowCtrGroupConfig -b {broker} -g G_matrix -v 1000000"),
        Entry("resetMasterFlushOffset -b {broker} -o 0"),
        Entry("setCommitLogReadAheadMode -b {broker} -m 0"),
        Entry("updateTopicList -b {broker} -f {directory}/topics.json"),
        Entry("updateSubGroupList -b {broker} -f {directory}/groups.json"),
        Entry("setConsumeMode -b {broker} -t MatrixTopic -g G_matrix -m PULL -q 0"),
    ),
    (
        Entry("updateOrderConf -t MatrixTopic -m get"),
        Entry("checkMsgSendRT -t MatrixTopic -a 5 -s 64", _without_numbers),
        Entry("sendMsgStatus -b broker-a -s 64 -c 3"),
        Entry("deleteKvConfig -s NS1 -k k1"),
        Entry("removeColdDataFlowCtrGroupConfig -b {broker} -g G_matrix"),
        Entry("resetOffsetByTime -g G_matrix -t MatrixTopic -s {reset} -f true", _sorted_lines),
        Entry("updateStaticTopic -b broker-a -t MatrixStatic -qn 4"),
    ),
    (
        Entry("updateOrderConf -t MatrixTopic -m delete"),
        Entry("consumerStatus -g G_matrix -s"),
        Entry("skipAccumulatedMessage -g G_matrix -t MatrixTopic -f true", _sorted_lines),
        Entry("wipeWritePerm -b broker-a", _without_numbers),
    ),
    (
        Entry("addWritePerm -b broker-a", _without_numbers),
        Entry("cloneGroupOffset -s G_matrix -d G_matrix2 -t MatrixTopic -o true"),
        Entry("cleanExpiredCQ -b {broker}"),
        Entry("cleanUnusedTopic -b {broker}"),
        Entry("deleteExpiredCommitLog -b {broker}"),
    ),
)


def entries() -> Iterable[Entry]:
    """Yield all commands in their order."""
    yield from SETUP
    for stage in STAGES:
        yield from stage


def run(tools: Tools, side: Side, directory: Path) -> dict[str, str]:
    """Run all commands against one side; return what each printed, tidied."""
    (directory / "topics.json").write_text(json.dumps([_LISTED_TOPIC]))
    (directory / "groups.json").write_text(json.dumps([_LISTED_GROUP]))
    values = {"broker": side.broker, "directory": str(directory), "reset": "1000"}
    printed: dict[str, str] = {}

    def do(stage: Iterable[Entry]) -> None:
        commands = [entry.words.format(**values).split() for entry in stage]
        outputs: list[str] = []
        for start in range(0, len(commands), AT_ONCE):
            outputs += tools.mqadmin(side.names, commands[start : start + AT_ONCE])
        for entry, output in zip(stage, outputs, strict=True):
            printed[entry.words] = tidied(entry, output + _exported(entry, directory), side)

    for entry in SETUP:
        do([entry])
    values |= tools.hold(side.names, TOPIC, GROUP, PRODUCERS)
    try:
        for stage in STAGES:
            do(stage)
    finally:
        tools.let_go(side.names)
    return printed


_LISTED_TOPIC = {"topicName": "MatrixListTopic", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6}
_LISTED_GROUP = {"groupName": "G_matrix_list", "consumeEnable": True}


def _exported(entry: Entry, directory: Path) -> str:
    """Return what a command wrote to a file."""
    name = entry.words.split()[0]
    if not name.startswith("export"):
        return ""
    path = directory / f"{name.removeprefix('export').lower()}.json"
    return _without_numbers(json.dumps(json.loads(path.read_text()), indent=0, sort_keys=True))


_PLACES = r"(CommitLog Offset:|physicOffset=|commitLogOffset=|#MasterCommitLogMaxOffset)\s*\d+"
_REPLACED: tuple[tuple[str, str], ...] = (
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(,\d{3})?", "TIME"),
    (r"\b[0-9A-F]{32}([0-9A-F]{24})?\b", "ID"),
    (r"\b[\d.]+@(peer-)?[\d#]+(?=[,\s])", "CLIENT"),
    (r"/?127\.0\.0\.1:\d{2,5}", "ADDRESS"),
    (_PLACES, r"\1 PLACE"),
    (r"@\d+\s*$", "@PLACE"),
    (r"\b1[6-9]\d{11}\b", "MILLISECONDS"),
    (r"rt=\d+ms", "rt=N"),
    (r"TPS: [\d.]+", "TPS: N"),
    (r"commitLogDiskRatio_\S+?:", "commitLogDiskRatio_PATH:"),
    (r"(?<![\w.])/[\w./~-]+/(?=[\w-]+\b)", "DIRECTORY/"),
    (r"\bmsgbodys/\S+", "FILE"),
    (r"recallHandle=\S+", "recallHandle"),
    (r"[ \t]+", " "),
    (r" $", ""),
)


_LEFT_OUT = re.compile(
    r"^.*ROCKSDB.*\n|MessageTrack \[consumerGroup=TOOLS_CONSUMER[^]]*\]\n?", re.MULTILINE
)
"""What is printed about what mqlake has not, and about commands that ran at the same time."""


def tidied(entry: Entry, output: str, side: Side) -> str:
    """Return what a command printed without what differs from run to run."""
    text = output.replace(side.broker, "BROKER").replace(side.names, "NAMESRV")
    text = _LEFT_OUT.sub("", text)
    for pattern, replacement in _REPLACED:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return entry.tidy(text.strip())
