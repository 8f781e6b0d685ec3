"""What a table keeps from its beginning: the form of its bodies, whether it has system topics, and
the name of the broker.

Bodies are decompressed or as stored, and all in the same form, so that rows can be compared with
the log. Tables of mqlake 0.1 have bodies as stored.
"""

from __future__ import annotations

import msgspec

from mqlake.errors import JobError
from mqlake.lake.followers.identity import CheckpointIdentity, followers_of, has_begun
from mqlake.lake.options import FollowOptions
from mqlake.query.reading.log import logger
from mqlake.storage.local import LocalDirectory
from mqlake.store.config.named_broker import named_broker

OPTION = "decompress"
"""The option of the source that decides the form."""

SYSTEM_TOPICS, AUTO = "systemTopics", "auto"
"""The option of the source, and its value in options of `follow` that leave it open."""

BROKER_NAME = "brokerName"
"""The option of the source that fills the column."""

log = logger()


def is_plain(source: dict[str, str]) -> bool:
    """Return whether bodies are decompressed, by the options of the source that were noted."""
    return source.get(OPTION, "false").lower() == "true"


def stated_source(source: dict[str, str]) -> dict[str, str]:
    """Return the options of the source that were noted, with the form of bodies."""
    return {**source, OPTION: str(is_plain(source)).lower()}


def with_form(options: FollowOptions, identity: CheckpointIdentity) -> FollowOptions:
    """Return options that state the form of the table's bodies.

    Args:
        identity: what the checkpoint belongs to; it may be new.

    Raises:
        JobError: the options demand another form than the table has.
    """
    there = _form_of(options, identity)
    stated = options.source.get(OPTION)
    asked = None if stated is None else stated.lower() == "true"
    if there is None:
        there = asked is not False
    elif asked is not None and asked != there:
        has = "decompressed bodies" if there else "bodies as stored"
        raise JobError(
            f"{options.place}: the table has {has}, and keeps them: to convert it, follow the "
            "store into another table (--out)"
        )
    elif not there and asked is None:
        log.warning(
            "%s: the table has bodies as stored, which may be compressed (sysFlag): new rows are "
            "written in the same way; to decompress them, follow the store into another table, or "
            "read the table with the source rocketmq (option table)",
            options.place,
        )
    source = {**options.source, OPTION: str(there).lower()}
    return msgspec.structs.replace(options, source=source)


def with_topics(options: FollowOptions, identity: CheckpointIdentity) -> FollowOptions:
    """Return options that state whether system topics are followed.

    If that is left open (`auto`), a new checkpoint follows none of them, and others continue.
    """
    if options.source.get(SYSTEM_TOPICS) != AUTO:
        return options
    is_old = has_begun(options, identity)
    found = identity.source.get(SYSTEM_TOPICS, "true") if is_old else "false"
    source = {**options.source, SYSTEM_TOPICS: found}
    return msgspec.structs.replace(options, source=source)


def with_broker_name(options: FollowOptions, identity: CheckpointIdentity) -> FollowOptions:
    """Return options with the name of the broker, if the store's settings have it.

    A checkpoint keeps what it began with: otherwise the column would change within the table.
    """
    if BROKER_NAME in options.source:
        return options
    if has_begun(options, identity):
        name = identity.source.get(BROKER_NAME)
    else:
        name = named_broker(LocalDirectory(options.store))
    if name is None:
        return options
    return msgspec.structs.replace(options, source={**options.source, BROKER_NAME: name})


def _form_of(options: FollowOptions, identity: CheckpointIdentity) -> bool | None:
    """Return whether the table has decompressed bodies; None if it is new."""
    if has_begun(options, identity):
        return is_plain(identity.source)
    others = followers_of(str(options.out))
    sources = [one.source or {} for id_, one in others.items() if id_ != identity.id]
    return all(map(is_plain, sources)) if sources else None
