"""What a partition knows besides its log: producers, leaders."""
