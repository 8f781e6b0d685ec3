"""Hostile input: seeded mutations of real records, files and stores, and what must hold on them.

    cases.py     one call of a target: the dice, what was done to the input, how many there were
    mutate.py     ways to change bytes and fields
    seeds.py      real records, made small; segments and whole stores out of them
    targets/      what is fed with them, and what is checked
    worker.py     a process of its own that runs cases: a crash or a hang costs the process only
    fleet.py      workers side by side
    page.py       its section of docs/reliability.md

`python -m tests.hostile --nightly` runs a million inputs; `--target NAME --seed N` replays a case.
"""
