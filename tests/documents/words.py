"""Phrases that make a reader stumble, and what to write instead.

Each pattern is one that has no right use on our pages: a phrase that is sometimes right does not
belong here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.documents.pages import prose


class Phrase(NamedTuple):
    """A pattern, and what to write instead of what it matches."""

    pattern: re.Pattern[str]
    instead: str


class Finding(NamedTuple):
    """A phrase in a text: the number of its line, what it is, and what to write instead."""

    line: int
    text: str
    instead: str


def _phrase(pattern: str, instead: str) -> Phrase:
    return Phrase(re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE), instead)


PHRASES = (
    _phrase(r"\bmade where\b", "created if missing"),
    _phrase(r"\bwhere there (?:is|are) (?:none|no)\b", "if … does not exist"),
    _phrase(r"\b(?:and )?where wanted\b", "optionally"),
    _phrase(
        r"\bthat there (?:is|are)(?: not)?(?= [a-z]*ly\b|[,.;:]| is\b| are\b)", "name the thing"
    ),
    _phrase(r"\b(?:is|are) (?-i:none)\b(?! of)", "does not exist; is not a …"),
    _phrase(r"\bhas it so\b|\bso and so\b|\bwhat comes of it\b", "name the thing"),
    _phrase(r"\blook(?:s|ed|ing)? after\b", "manage"),
    _phrase(r"\blets? (?:a group|producers)\b", "reset …; restore …"),
    _phrase(r"\bone behind the other\b|\bbehind each other\b", "consecutively"),
    _phrase(r"\b(?:right|further|lies?|lying) behind\b", "after, past, beyond"),
    _phrase(
        r"\bbehind (?:it|them|that|the (?:last|first|end|cut|gap|resume|log))\b", "after, past"
    ),
    _phrase(r"\bpower cuts?\b|\bthe end of the (?:process|machine)\b", "power loss; process crash"),
    _phrase(r"\boftener\b", "more often"),
    _phrase(r"\b(?:goes|go|went) on\b", "continues, resumes"),
    _phrase(r"\b(?:is|are|was|were|be) told\b", "is notified; is reported"),
    _phrase(r"\bin one go\b|\ball at one time\b", "in a single call, atomically"),
    _phrase(r"\bin good order\b", "cleanly"),
    _phrase(r"\banew\b", "again"),
    _phrase(r"\bcheck sums?\b", "checksum"),
    _phrase(r"\bfor who\b", "for those who"),
    _phrase(r"\bsays? of (?:itself|it|them)\b", "reports about itself"),
    _phrase(r"\bbut for\b", "except"),
    _phrase(r"\b(?:there|here) (?:is|are) else\b|\belse by\b", "otherwise"),
)


def findings(text: str) -> list[Finding]:
    """Return the phrases in a Markdown text, in the order of their lines."""
    readable = prose(text)
    found = [
        Finding(readable.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), instead)
        for pattern, instead in PHRASES
        for match in pattern.finditer(readable)
    ]
    return sorted(found)
