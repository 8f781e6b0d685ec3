"""The requests that manage users and ACLs, of brokers and of name servers."""
