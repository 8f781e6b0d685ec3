"""Clients of a broker whose answers are mutated, in one event loop whose time is virtual."""
