"""The commit log on other machines: sent to slaves, or received from a master."""
