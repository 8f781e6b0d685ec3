"""Clients, brokers and a name server in one event loop: simulated time, network and disks."""
