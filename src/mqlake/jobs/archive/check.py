"""Check an archive: read every object back and compare it with the manifest."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from mqlake.errors import JobError, StoreError
from mqlake.formats.archive_manifest import ArchivedFile
from mqlake.formats.damage import Damage
from mqlake.jobs.disk_faults import reports_disk_faults
from mqlake.jobs.engine import Engine
from mqlake.storage.protocol import Directory
from mqlake.store.archive.archived import read_manifest

_CHUNK = 4 << 20


class ArchiveCheckReport(msgspec.Struct, frozen=True, rename="camel"):
    """What was read of an archive, and which objects differ from the manifest."""

    archive: str
    generation: int
    objects: int
    bytes_read: int
    damage: list[Damage]


@reports_disk_faults
def check(directory: Directory, engine: Engine) -> ArchiveCheckReport:
    """Read every object that the manifest names.

    Raises:
        JobError: the directory is not an archive.
    """
    manifest = read_manifest(directory)
    if manifest is None:
        raise JobError(
            f"{directory.describe()}: there is no manifest in it, so it is not an archive"
        )

    def task(file: ArchivedFile) -> Damage | None:
        return _check(directory, file)

    found = engine.run(task, manifest.all_files, "verify archive")
    return ArchiveCheckReport(
        archive=directory.describe(),
        generation=manifest.generation,
        objects=len(manifest.all_files),
        bytes_read=sum(file.stored for file in manifest.all_files),
        damage=[damage for damage in found if damage],
    )


def _check(directory: Directory, file: ArchivedFile) -> Damage | None:
    path = file.object
    try:
        opened = directory.open(file.object)
        try:
            if opened.size != file.stored:
                reason = f"this object has {opened.size} bytes, but the manifest says {file.stored}"
                return Damage(path, min(opened.size, file.stored), 0, reason)
            digest = sha256()
            for at in range(0, file.stored, _CHUNK):
                digest.update(opened.read(at, _CHUNK))
        finally:
            opened.close()
    except StoreError as error:
        return Damage(path, 0, file.stored, str(error))
    if digest.hexdigest() != file.sha256:
        return Damage(path, 0, file.stored, "its bytes are not those that were archived")
    return None
