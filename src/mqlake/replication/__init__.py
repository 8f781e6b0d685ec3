"""The commit log and tables on other machines: sent to slaves, or received from a master."""
