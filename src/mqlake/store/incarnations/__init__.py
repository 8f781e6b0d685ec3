"""Which records of a topic are dead, because the topic was deleted after they were put."""
