"""Sending messages: checks, properties, the choice of a queue; transactions; recalls."""
