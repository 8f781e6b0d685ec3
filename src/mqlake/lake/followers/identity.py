"""The identity of a follower: the id in its checkpoint, and what the checkpoint belongs to."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from posixpath import basename
from typing import Any, TypeVar

import msgspec

from mqlake.errors import JobError, StoreError
from mqlake.lake.files.lake_files import LakeFiles
from mqlake.lake.followers.follower_notes import FOLLOWERS, fetch_notes, put_note
from mqlake.lake.options import STATE, FollowOptions, Format, StoreQuery
from mqlake.storage.durable import replace_file
from mqlake.storage.local_owned import LocalOwnedDirectory
from mqlake.storage.owner_lock import OwnerLock

NAME = "mqlake-follow.json"
"""File in the checkpoint's directory, beside Spark's files."""

S = TypeVar("S")

_LOCAL = LakeFiles()


class CheckpointIdentity(msgspec.Struct, frozen=True):
    """What a checkpoint belongs to. A checkpoint counts batches of one store into one table.

    Attributes:
        begin: position in the log at which the first batch begins; None until it is known.
        source: the options of the source at its first start.
    """

    id: str
    store: str
    target: str
    begin: dict[str, Any] | None = None
    source: dict[str, str] = {}


class Follower(msgspec.Struct, frozen=True):
    """A store that a table follows, and the checkpoint that records how far.

    Attributes:
        begin, source: where the first batch begins, and the options of the source at the last
            start of `follow`; None for followers from before these were noted.
        upsert_by: column whose values are keys, of which the table has the newest messages.
    """

    store: str
    checkpoint: str
    begin: dict[str, Any] | None = None
    source: dict[str, str] | None = None
    upsert_by: str | None = None


def has_begun(options: FollowOptions, identity: CheckpointIdentity) -> bool:
    """Return whether a checkpoint has been used before."""
    return identity.begin is not None or (options.checkpoint / "offsets").exists()


@contextmanager
def held(options: FollowOptions) -> Generator[CheckpointIdentity]:
    """Hold a checkpoint exclusively, and yield its identity; it may be new.

    Raises:
        JobError: the checkpoint is in use, or belongs to another store or table; or the table
            already follows this store with another checkpoint, or with one that is lost.
    """
    with in_use(options.checkpoint), alone(options):
        fetch_notes(options)
        yield _identity(options)


def begin_at(
    options: StoreQuery, identity: CheckpointIdentity, begin: dict[str, Any]
) -> CheckpointIdentity:
    """Note where a new checkpoint's first batch begins; return the completed identity."""
    found = msgspec.structs.replace(identity, begin=begin, source=options.source)
    _write(options.checkpoint / NAME, found)
    return found


def note_query(options: FollowOptions, identity: CheckpointIdentity) -> None:
    """Note in the table what is read of the store, for readers of both the table and the log."""
    checkpoint = str(options.checkpoint.resolve())
    known = Follower(identity.store, checkpoint, identity.begin, options.source, options.upsert_by)
    note_follower(options.out, identity.id, known)
    put_note(options, identity.id)


def note_follower(table: Path, id_: str, follower: Follower) -> None:
    """Note in a table a store that it follows."""
    _write(table / STATE / FOLLOWERS / f"{id_}.json", follower)


def followers_of(table: str, files: LakeFiles = _LOCAL) -> dict[str, Follower]:
    """Return the stores that a table follows, by the ids of their followers.

    Args:
        table: its directory or URL.
        files: what reads its files.

    Raises:
        JobError: a note is damaged.
    """
    found: dict[str, Follower] = {}
    for path, _ in sorted(files.walk(f"{table}/{STATE}/{FOLLOWERS}")):
        name = basename(path)
        if name.endswith(".json"):
            found[name.removesuffix(".json")] = _decoded(path, files.read(path), Follower)
    return found


def identity_of(checkpoint: Path) -> CheckpointIdentity | None:
    """Return what a checkpoint belongs to; None if it is not a checkpoint of `follow`."""
    return _read(checkpoint / NAME, CheckpointIdentity)


def known_followers(options: FollowOptions) -> list[tuple[Path, CheckpointIdentity]]:
    """Return the checkpoints that have written messages into a table, and their identities.

    Raises:
        JobError: a checkpoint is lost.
    """
    fetch_notes(options)
    found: list[tuple[Path, CheckpointIdentity]] = []
    for path in sorted((options.out / STATE / FOLLOWERS).glob("*.json")):
        known = _read(path, Follower)
        identity = known and identity_of(Path(known.checkpoint))
        if known is None or identity is None:
            raise JobError(f"{path}: the checkpoint that it names is lost")
        found.append((Path(known.checkpoint), identity))
    return found


def alone(options: FollowOptions) -> AbstractContextManager[None]:
    """Hold a table exclusively if the library for its commits does not support concurrent ones."""
    if options.format is Format.PARQUET:
        return in_use(options.out / STATE)
    return nullcontext()


@contextmanager
def in_use(directory: Path) -> Generator[None]:
    """Hold a directory exclusively; raise JobError if it is in use."""
    LocalOwnedDirectory.make(directory)
    with ExitStack() as held:
        try:
            held.enter_context(OwnerLock(directory))
        except StoreError:
            raise JobError(f"{directory}: in use by another mqlake follow: stop it first") from None
        yield


def _identity(options: FollowOptions) -> CheckpointIdentity:
    path, followers = options.checkpoint / NAME, options.out / STATE / FOLLOWERS
    kind = "tables by topic" if options.is_per_topic else "table"
    if options.upsert_by is not None:
        kind = f"{kind} by key ({options.upsert_by})"
    target = f"{options.format} {kind} {options.table or options.url or options.out.resolve()}"
    new = CheckpointIdentity(uuid.uuid4().hex, str(options.store.resolve()), target)
    found = _read(path, CheckpointIdentity)
    if found is None:
        if (options.checkpoint / "offsets").exists():
            raise JobError(
                f"{options.checkpoint}: this is the checkpoint of another query: give another"
                " --checkpoint"
            )
        _refuse_second(options, followers, new.store)
        _write(path, new)
        found = new
    if (found.store, found.target) != (new.store, new.target):
        raise JobError(
            f"{options.checkpoint}: this checkpoint is that of {found.store} into the "
            f"{found.target}: give those, or another --out or --checkpoint"
        )
    note = followers / f"{found.id}.json"
    known = _read(note, Follower) or Follower(found.store, "", upsert_by=options.upsert_by)
    checkpoint = str(options.checkpoint.resolve())
    _write(note, msgspec.structs.replace(known, checkpoint=checkpoint))
    put_note(options, found.id)
    return found


def _refuse_second(options: FollowOptions, followers: Path, store: str) -> None:
    """Refuse a second checkpoint of a store, and a second store of a table by key.

    With a second checkpoint, every message would be there twice.
    """
    for path in sorted(followers.glob("*.json")):
        known = _read(path, Follower)
        note = f"{options.place}/{STATE}/{FOLLOWERS}/{path.name}"
        if options.url is not None and options.is_per_topic:
            raise JobError(f"{options.url}: tables by topic on an object store follow one store")
        if known is not None and known.store == store:
            raise JobError(
                f"{options.place}: has messages of {store} already, by --checkpoint "
                f"{known.checkpoint}: give that one, or remove {note} to have them once more"
            )
        if known is not None and (options.upsert_by or known.upsert_by):
            raise JobError(
                f"{options.place}: follows {known.store}: a table with --upsert-by follows one "
                "store, as the messages of two have no common order: give another --out"
            )


def _read(path: Path, type_: type[S]) -> S | None:
    try:
        return _decoded(path, path.read_bytes(), type_)
    except FileNotFoundError:
        return None


def _decoded(path: Path | str, text: bytes, type_: type[S]) -> S:
    try:
        return msgspec.json.decode(text, type=type_)
    except msgspec.MsgspecError as error:
        raise JobError(f"{path}: damaged: {error}") from None


def _write(path: Path, value: msgspec.Struct) -> None:
    """Replace a file atomically; return once it is durable."""
    directory = LocalOwnedDirectory.make(path.parent)
    replace_file(directory, path.name, msgspec.json.encode(value) + b"\n")
