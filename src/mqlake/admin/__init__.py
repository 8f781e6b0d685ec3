"""Look after brokers and name servers over the wire, those of mqlake and of RocketMQ alike.

from mqlake.admin.admin import Admin
from mqlake.admin import topics

async with Admin("127.0.0.1:9876") as admin:
    for queue in await topics.status(admin, "Orders"):
        print(queue)
"""
