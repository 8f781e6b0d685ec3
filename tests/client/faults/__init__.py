"""Producers and consumers under faults that are drawn from a seed."""
