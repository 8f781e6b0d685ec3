"""Requests about lite topics: subscriptions, pops, and what administrators ask."""
