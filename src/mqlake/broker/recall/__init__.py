"""RECALL_MESSAGE: delayed messages are taken back before they are delivered."""
