"""Forged requests: none of them is served.

`python -m tests.auth.forgeries` mutates signatures, headers, bodies, frames and policies;
`--nightly` does so a million times, and writes docs/reliability.md.
"""
