"""No request holds the event loop: the longest uninterrupted piece of work of each handler.

`python -m tests.budget` measures every handler of broker and name server with inputs at the limits;
`--nightly` writes docs/reliability.md.
"""
