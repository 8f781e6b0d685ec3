"""Who may make which request: users with different permissions, each request, and the verdict.

The same requests are sent to mqlake's broker and to the real RocketMQ (`tests/peer`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mqlake.protocol.codes import RequestCode, ResponseCode
from mqlake.protocol.command import Command, request
from mqlake.protocol.signature import Credentials
from mqlake.remoting.client import RemotingClient
from mqlake.remoting.errors import RequestTimeoutError
from tests.auth.closed import ROOT
from tests.auth.requests import EXAMPLES, body_of

Entry = tuple[str, Sequence[str], str]
"""A resource, actions, and Allow or Deny."""

PATIENCE: Final = 100.0

USERS: Final[Mapping[str, Sequence[Entry]]] = {
    "without-policy": [],
    "producer": [("Topic:t", ["Pub"], "Allow")],
    "consumer": [("Topic:t", ["Sub"], "Allow"), ("Group:g", ["Sub"], "Allow")],
    "topic-reader": [("Topic:*", ["Get"], "Allow")],
    "group-reader": [("Group:*", ["Get"], "Allow")],
    "monitoring": [(f"{kind}:*", ["Get"], "Allow") for kind in ("Topic", "Group", "Cluster")],
    "topic-owner": [("Topic:*", ["Create", "Update", "Delete"], "Allow")],
    "group-owner": [("Group:*", ["Create", "Update", "Delete"], "Allow")],
    "owner": [
        (f"{kind}:*", ["Create", "Update", "Delete"], "Allow") for kind in ("Topic", "Group")
    ],
    "cluster-reader": [("Cluster:main", ["Get"], "Allow")],
    "cluster-owner": [("Cluster:main", ["Update"], "Allow")],
    "everything": [("*", ["All"], "Allow")],
    "all-but-t": [("*", ["All"], "Allow"), ("Topic:t", ["All"], "Deny")],
}
NOBODY, FORGER, SUPER = "nobody", "wrong-key", "super"

MORE: Final[Mapping[str, str]] = {
    "queueId": "0", "queueOffset": "0", "offset": "0", "commitOffset": "0", "maxMsgNums": "1",
    "sysFlag": "0", "suspendTimeoutMillis": "0", "subVersion": "0", "invisibleTime": "1000",
    "pollTime": "0", "bornTime": "1", "initMode": "0", "extraInfo": "0 1 1000 0 0 broker-a 0 0",
    "defaultTopic": "TBW102", "defaultTopicQueueNums": "4", "bornTimestamp": "1", "flag": "0",
    "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "timestamp": "1", "maxNum": "1",
    "beginTimestamp": "0", "endTimestamp": "1", "readQueueNums": "1", "writeQueueNums": "1",
    "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
    "isForce": "false", "index": "0", "count": "1", "isOrder": "false", "expType": "TAG",
    "tranStateTableOffset": "0", "commitOrRollback": "8", "fromTransactionCheck": "false",
    "delayLevel": "1", "key": "k", "originMsgId": "m", "originTopic": "t", "unitMode": "false",
    "recallHandle": "x", "statsName": "TOPIC_PUT_NUMS", "statsKey": "t", "checkStoreTime": "0",
    "masterFlushOffset": "0", "jsonEnable": "false", "configType": "topics",
}  # fmt: skip
"""Fields that some requests need, and that say nothing about topics and groups."""

OVERRIDES: Final[Mapping[RequestCode, Mapping[str, str]]] = {
    RequestCode.RESUME_CHECK_HALF_MESSAGE: {"topic": "t", "msgId": "m"},
}
"""What RocketMQ looks at, and mqlake does not."""

_REFUSED = re.compile(
    "^User:.* has no permission to access|^username cannot be null|^check signature failed"
)


class Verdict(NamedTuple):
    """What became of a request.

    Attributes:
        is_refused: whether its sender may not make it.
        is_served: whether the broker knows such requests.
        text: the answer's code and remark.
    """

    is_refused: bool
    is_served: bool
    text: str


Verdicts = Mapping[tuple[RequestCode, str], Verdict]


def credentials(name: str) -> Credentials | None:
    """Return the name and the key with which a user's requests are signed."""
    if name == NOBODY:
        return None
    if name == FORGER:
        return Credentials("everything", "another-password")
    return ROOT if name == SUPER else Credentials(name, f"{name}-password")


async def prepare(address: str) -> None:
    """Create the users at a broker."""
    client = RemotingClient(connect_timeout=PATIENCE, credentials=ROOT)
    try:
        for name, entries in USERS.items():
            body = {"username": name, "password": f"{name}-password", "userType": "Normal"}
            await _accepted(client, address, RequestCode.AUTH_CREATE_USER, {"username": name}, body)
            if not entries:
                continue
            policy = [
                {"resource": resource, "actions": actions, "decision": decision}
                for resource, actions, decision in entries
            ]
            subject = f"User:{name}"
            body = {
                "subject": subject,
                "policies": [{"policyType": "Custom", "entries": policy}],
            }
            fields = {"subject": subject}
            await _accepted(client, address, RequestCode.AUTH_CREATE_ACL, fields, body)
    finally:
        await client.close()


async def _accepted(
    client: RemotingClient, address: str, code: int, fields: dict[str, str], body: object
) -> None:
    asked = request(code, fields, json.dumps(body).encode())
    answer = await client.request(address, asked, PATIENCE)
    assert answer.code == ResponseCode.SUCCESS, answer.remark


async def verdicts(address: str, codes: Sequence[RequestCode]) -> Verdicts:
    """Return what a broker answers to each user's requests."""
    found: dict[tuple[RequestCode, str], Verdict] = {}
    for name in (*USERS, NOBODY, FORGER, SUPER):
        client = RemotingClient(connect_timeout=PATIENCE, credentials=credentials(name))
        try:
            answers = await asyncio.gather(*(_ask(client, address, code) for code in codes))
        finally:
            await client.close()
        found |= {(code, name): answer for code, answer in zip(codes, answers, strict=True)}
    return found


async def _answered(client: RemotingClient, address: str, asked: Command) -> Command:
    """Ask up to three times: on a busy machine, RocketMQ leaves a pull without an answer."""
    for _ in range(2):
        try:
            return await client.request(address, asked, PATIENCE)
        except RequestTimeoutError:
            continue
    return await client.request(address, asked, PATIENCE)


async def _ask(client: RemotingClient, address: str, code: RequestCode) -> Verdict:
    example = EXAMPLES[code]
    fields = {**MORE, **example.fields, **OVERRIDES.get(code, {})}
    answer = await _answered(client, address, request(code, fields, body_of(example)))
    remark = answer.remark or ""
    return Verdict(
        is_refused=answer.code == ResponseCode.NO_PERMISSION and bool(_REFUSED.search(remark)),
        is_served=answer.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        text=f"{answer.code} {remark[:200]}",
    )
