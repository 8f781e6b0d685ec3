"""Metrics that every server has."""
