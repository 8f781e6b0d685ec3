"""The files of a batch if each topic has a table of its own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote

from mqlake.lake.files.partition_writer import FileShape

_LONGEST_NAME = 200
_DIGEST = 16


@dataclass(frozen=True)
class TopicShapes:
    """The form of the files of each topic.

    Attributes:
        new: for topics without a table; its directory is that of all tables.
        below: where its files are in the directory of a table.
        known: for topics with a table.
        refused: topics whose tables do not accept the columns, with the reason.
    """

    new: FileShape
    known: dict[str, FileShape]
    refused: dict[str, str] = field(default_factory=dict[str, str])
    below: str = ""

    def of(self, topic: str) -> FileShape:
        """Return the shape of a topic's files."""
        known = self.known.get(topic)
        if known is not None:
            return known
        names = (self.new.directory, directory_name(topic), self.below)
        return replace(self.new, directory="/".join(filter(None, names)))


def directory_name(topic: str) -> str:
    """Return the name of a topic's directory, which is unique for the topic and not hidden.

    Bytes other than letters, digits, `-` and `_` are written as `~XX`, because libraries interpret
    `%XX` in paths themselves. A long name is cut and ends with a digest.
    """
    name = quote(topic, safe="").replace("~", "%7E").replace(".", "%2E").replace("%", "~")
    if name.startswith("_"):
        name = f"~5F{name[1:]}"
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(topic.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
        name = f"{name[: _LONGEST_NAME - _DIGEST - 1]}~{digest}"
    return name


def topic_of(name: str) -> str | None:
    """Return the topic of a directory; None if its name does not contain it."""
    topic = unquote(name.replace("~", "%"))
    return topic if directory_name(topic) == name else None
