"""One module a command. Nothing heavy is imported before a command runs."""
