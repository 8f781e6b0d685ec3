"""What of a broker's state needs attention."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from mqlake.protocol.bodies.ha import HaRuntimeInfo

BAD: Final = "bad"
WARN: Final = "warn"
_NEARLY_FULL: Final = 0.75
"""RocketMQ begins to remove old segments at any hour at this share of the disk."""
_FULL: Final = 0.9
_LARGEST: Final = 2.0**63
_CLOCK: Final = 5_000
_BEHIND: Final = 64 << 20
_WRITABLE: Final = 2
_RUNTIME: Final = re.compile(r"\[ (\d+) days, (\d+) hours, (\d+) minutes, (\d+) seconds \]")


class AttentionNote(NamedTuple):
    """Something that needs attention: `kind` is BAD or WARN."""

    kind: str
    text: str


def number_in(facts: Mapping[str, str], name: str) -> float:
    """Return a number of a broker's runtime status; 0 if it is missing or no number."""
    words = facts.get(name, "").split()
    try:
        found = float(words[0]) if words else 0.0
    except ValueError:
        return 0.0
    return found if abs(found) < _LARGEST else 0.0  # Neither infinite nor no number.


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def clock_difference(facts: Mapping[str, str], now: int) -> int | None:
    """Return by how many milliseconds a broker's clock is ahead of ours; None if unknown.

    A broker does not report its time, but when it started and how long it has run, in seconds.
    """
    found, started = (
        _RUNTIME.fullmatch(facts.get("runtime", "").strip()),
        facts.get("bootTimestamp"),
    )
    if found is None or started is None or not _is_number(started):
        return None
    days, hours, minutes, seconds = (int(text) for text in found.groups())
    ran = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return int(started) + ran * 1000 - now


def warnings_of(
    facts: Mapping[str, str] | None,
    config: Mapping[str, str],
    ha: HaRuntimeInfo | None,
    slaves: int,
    now: int,
) -> list[AttentionNote]:
    """Return what needs attention.

    Args:
        facts: the runtime status; None if the broker does not answer, empty if it refuses.
        config: the settings; empty if they are unknown.
        ha: the positions of a master's slaves; None if they are unknown.
        slaves: how many slaves are registered with name servers.
        now: milliseconds.
    """
    if facts is None:
        return [AttentionNote(BAD, "It does not answer.")]
    if not facts:
        return [AttentionNote(WARN, "It does not show its state to this user.")]
    return [
        *_writing(facts, config),
        *_disk(facts),
        *_tasks(facts),
        *_clock(facts, now),
        *_copies(ha, slaves),
    ]


def _writing(facts: Mapping[str, str], config: Mapping[str, str]) -> list[AttentionNote]:
    if reason := facts.get("notWritable"):
        return [AttentionNote(BAD, f"It refuses messages: {reason}")]
    permission = config.get("brokerPermission", "6")
    if _is_number(permission) and not int(permission) & _WRITABLE:
        return [AttentionNote(WARN, "It is read-only: brokerPermission does not allow to write.")]
    return []


def _disk(facts: Mapping[str, str]) -> list[AttentionNote]:
    ratio = number_in(facts, "commitLogDiskRatio")
    if ratio >= _FULL:
        return [AttentionNote(BAD, f"The disk is {ratio:.0%} full: it may refuse messages.")]
    if ratio >= _NEARLY_FULL:
        return [AttentionNote(WARN, f"The disk is {ratio:.0%} full: old segments go at any hour.")]
    return []


def _tasks(facts: Mapping[str, str]) -> list[AttentionNote]:
    found: list[AttentionNote] = []
    for name, text in facts.items():
        if name.startswith("failure_"):
            task = name.removeprefix("failure_")
            count = facts.get(f"failures_{task}", "?")
            found.append(AttentionNote(BAD, f"The task {task} fails ({count} times): {text}"))
    behind = number_in(facts, "dispatchBehindBytes")
    if behind > _BEHIND:
        mib = behind / (1 << 20)
        found.append(
            AttentionNote(WARN, f"Consumers cannot see the last {mib:,.0f} MiB of the log yet.")
        )
    return found


def _clock(facts: Mapping[str, str], now: int) -> list[AttentionNote]:
    difference = clock_difference(facts, now)
    if difference is None or abs(difference) <= _CLOCK:
        return []
    where = "ahead of" if difference > 0 else "behind"
    seconds = abs(difference) // 1000
    return [
        AttentionNote(WARN, f"Its clock is {seconds:,} s {where} the console's: times mislead.")
    ]


def _copies(ha: HaRuntimeInfo | None, slaves: int) -> list[AttentionNote]:
    if ha is None or not ha.master:
        return []
    found = [
        AttentionNote(
            WARN, f"Its slave {each.addr} lacks {each.diff / (1 << 20):,.1f} MiB of the log."
        )
        for each in ha.ha_connection_info
        if not each.in_sync
    ]
    missing = slaves - len(ha.ha_connection_info)
    if missing > 0:
        found.append(AttentionNote(BAD, f"{missing} of its {slaves} slaves copy nothing."))
    return found
