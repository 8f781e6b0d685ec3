"""Users and ACLs in RocksDB, as RocketMQ keeps them."""
