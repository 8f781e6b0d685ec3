"""One module for each command. Nothing heavy is imported before a command runs."""
