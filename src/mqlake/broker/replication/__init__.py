"""The commit log on other machines: sent to slaves, or taken from a master."""
