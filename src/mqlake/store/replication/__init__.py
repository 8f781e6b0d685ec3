"""Copies of a store's log on other machines: what a master waits for, and what a slave receives."""
