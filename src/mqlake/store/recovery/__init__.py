"""Recovery of a store that is opened, in four stages; `recovery.recover` calls them in turn.

find
    Read what the directory holds: segments, queue files, index files, checkpoint, abort file.
    `find.Found`.
derive
    Read the log from the resume point to its end, and compute what follows from it: where the log
    ends and why, where each queue ends before that stretch, how much of the index is valid.
    `derive.Facts`. It changes nothing.
settle
    Decide what to change, as plain values: cut the log here, give up these queue files, rebuild
    the index from there, dispatch that stretch. `plan.Plan`. It neither reads nor writes.
commit
    Change the directory. It is the only stage that writes, in an order that survives a crash at any
    moment: its comments say why each step comes where it does.

Constructors take plain values and do no I/O. Functions that read a directory first are called
`open` or `find…`.
"""
