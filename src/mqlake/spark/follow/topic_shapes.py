"""Where the files of a batch go if each topic has a table of its own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote

from mqlake.spark.follow.partition_writer import Shape

_LONGEST_NAME = 200
_DIGEST = 16


@dataclass(frozen=True)
class TopicShapes:
    """The shapes of the files of each topic.

    Attributes:
        new: for topics without a table; its directory is that of all tables.
        below: where in the directory of a table its files are.
        known: for topics with one.
        refused: topics whose tables do not take the columns, with the reason.
    """

    new: Shape
    known: dict[str, Shape]
    refused: dict[str, str] = field(default_factory=dict[str, str])
    below: str = ""

    def of(self, topic: str) -> Shape:
        """Return the shape of a topic's files."""
        known = self.known.get(topic)
        if known is not None:
            return known
        names = (self.new.directory, directory_name(topic), self.below)
        return replace(self.new, directory="/".join(filter(None, names)))


def directory_name(topic: str) -> str:
    """Return the name of a topic's directory, which is no other topic's, and hidden from nobody.

    It is the topic, with bytes other than letters, digits, `-` and `_` as `~XX`: libraries take
    `%XX` in paths for an escape of their own.
    """
    name = quote(topic, safe="").replace("~", "%7E").replace(".", "%2E").replace("%", "~")
    if name.startswith("_"):
        name = f"~5F{name[1:]}"
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(topic.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
        name = f"{name[: _LONGEST_NAME - _DIGEST - 1]}~{digest}"
    return name


def topic_of(name: str) -> str | None:
    """Return the topic of a directory; None if its name does not say it."""
    topic = unquote(name.replace("~", "%"))
    return topic if directory_name(topic) == name else None
