"""A web service that stores an order and publishes it, both or neither.

    pip install fastapi uvicorn
    NAME_SERVERS=127.0.0.1:9876 uvicorn orders_service:app

The message is a half message until the order is in the database. If the service dies in between,
the broker asks the next one (`check`), which looks into the database.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from uuid import uuid4

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from mqlake.client import Message, Producer, ReceivedMessage, TransactionState

NAME_SERVERS = os.environ.get("NAME_SERVERS", "127.0.0.1:9876")
DATABASE = os.environ.get("DATABASE", "orders.sqlite")
TOPIC, GROUP = "ExampleServiceOrders", "example-orders-service"


class Order(BaseModel):
    customer: str
    amount: int


def store(order_id: str, order: Order) -> None:
    if order.amount <= 0:
        raise HTTPException(422, "an order has an amount")
    with closing(sqlite3.connect(DATABASE)) as database, database:
        row = order_id, order.customer, order.amount
        database.execute("INSERT INTO orders VALUES (?, ?, ?)", row)


def is_stored(order_id: str) -> bool:
    with closing(sqlite3.connect(DATABASE)) as database:
        found = database.execute("SELECT 1 FROM orders WHERE id = ?", (order_id,))
        return found.fetchone() is not None


async def check(half: ReceivedMessage) -> TransactionState:
    """Tell a broker what became of a message whose end it has not heard of."""
    stored = is_stored(half.keys[0])
    return TransactionState.COMMIT if stored else TransactionState.ROLLBACK


producer = Producer(NAME_SERVERS, group=GROUP, check=check)


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
    with closing(sqlite3.connect(DATABASE)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS orders (id PRIMARY KEY, customer, amount)")
    async with producer:
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/orders")
async def place(order: Order) -> dict[str, str]:
    order_id = uuid4().hex
    body = json.dumps({"id": order_id, **order.model_dump()}).encode()
    message = Message(topic=TOPIC, body=body, keys=order_id)
    async with await producer.transaction(message) as transaction:
        store(order_id, order)
    return {"id": order_id, "message": transaction.result.message_id}
