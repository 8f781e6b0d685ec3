"""One RocketMQ store directory, opened read-only: what a query or a report needs of it."""
