"""Values that somebody may give any setting: wrong forms, limits, and what lies next to them."""

from __future__ import annotations

import msgspec

from mqlake.store.bounds import Within, rules

NUMBERS = (
    *(-(2**63), -(2**31), -1, 0, 1, 2, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30),
    *("", " ", "abc", "1.5", "1e9", "0x10", "9" * 5000, "-", "NaN", "true", "\uff11"),
)
TEXTS = (
    *("", " ", "\0", "a\0b", "\x01", "\x02", "\n", "\r\nx=1", "\ud800", "a/b", "..", "."),
    *("x" * 100, "x" * 101, "x" * 40_000, "日本" * 20, "é", "%s%n", "{}", "a b", "1", "-1", "abc"),
    *("~nobody", "04", "4;16", "24", "04;", ";", "-4", "04:30", "0" * 9000, "*", "04,16"),
    *("1s", "1s 2s", "1d", "36600d", "36601d", "999999999999d", "1x", "1s  2s", "0s"),
    *(" ".join(["1s"] * 1000), " ".join(["1s"] * 1001)),
    *("127.0.0.1", "::1", "fe80::1%lo", "256.0.0.1", "localhost"),
    *("a:1", "a:0", "a:65536", "a:1;b", "a:1;;b:2;", "[::1]:1", ":1", "a:", "a:" + "9" * 5000),
    *("ASYNC_FLUSH", "SYNC_FLUSH", "SLAVE", "SYNC_MASTER", "POP", "PULL", "4.9", "true", "maybe"),
    *("DISABLE", "PROM"),
)


def hostile(kind: type[msgspec.Struct], attribute: str) -> list[object]:
    """Return values for the setting of an attribute, those next to its limits among them."""
    rule = rules(kind).get(attribute)
    if isinstance(rule, Within):
        edges = (rule.least - 1, rule.least, rule.most, rule.most + 1)
        return [*dict.fromkeys((*edges, *NUMBERS))]
    return [*TEXTS, *NUMBERS[:4], None]
