"""The queues that a consumer owns: assigned, locked if they are consumed in order, revoked."""
