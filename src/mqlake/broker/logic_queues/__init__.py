"""Requests for logic queues of static topics, translated before the families receive them."""
