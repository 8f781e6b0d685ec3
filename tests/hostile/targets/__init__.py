"""What is fed with hostile input. Each target is a function of a case, and raises on a fault."""

from __future__ import annotations

from tests.hostile.cases import Target
from tests.hostile.targets import (
    commands,
    corpus,
    documents,
    index_files,
    jobs,
    kafka,
    readers,
    records,
    remoting,
    scans,
    traps,
)

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        *records.TARGETS,
        *scans.TARGETS,
        *traps.TARGETS,
        *index_files.TARGETS,
        *documents.TARGETS,
        *readers.TARGETS,
        *jobs.TARGETS,
        *commands.TARGETS,
        *corpus.TARGETS,
        *kafka.TARGETS,
        *remoting.TARGETS,
    )
}
