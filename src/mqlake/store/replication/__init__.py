"""Copies of a store's log on other machines: what a master waits for, what a slave takes."""
