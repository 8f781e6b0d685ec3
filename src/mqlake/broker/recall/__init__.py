"""RECALL_MESSAGE: recall delayed messages before they are delivered."""
