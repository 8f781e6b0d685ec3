"""What this machine has for mqlake, what it lacks, and the command that mends it."""
