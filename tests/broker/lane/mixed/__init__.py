"""Connections with and without TLS, with and without signatures, which the lane serves together.

A script is drawn from a seed: what each connection sends, in which pieces, how fast it reads and
how it ends. Two brokers play it, one of them without the lane. `MIXED_SCRIPTS=100000 pytest
tests/broker/lane/mixed` plays so many.
"""
