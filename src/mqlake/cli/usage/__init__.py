"""What to type instead of a command line that the parser refuses."""
