// RocketMQ's gRPC client for Node.js (rocketmq-client-nodejs), which does what its input asks.
//
// `node main.js ENDPOINT`: the lines of its input and output are those of ../python/main.py.
'use strict';

const { createHash } = require('node:crypto');
const { createInterface } = require('node:readline');
const {
  ConsumeResult, FilterExpression, LitePushConsumerBuilder, Producer, PushConsumer, SimpleConsumer,
} = require('rocketmq-client-nodejs');
const {
  FilterType, TransactionResolution,
} = require('rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb');

const SHOWN = 200; // bytes of a body that are shown; of a longer one, its length and digest
const endpoints = process.argv[2];
const quiet = { info() {}, warn() {}, error() {}, debug() {} };
const clients = new Map();
const seen = new Map();
const asked = new Map();
const transactions = new Map();
const receipts = [];

function shown(body) {
  if (body.length <= SHOWN) return body.toString();
  return `${body.length} bytes ${createHash('sha1').update(body).digest('hex').slice(0, 10)}`;
}

function described(message) {
  return {
    topic: message.topic,
    body: shown(message.body),
    id: message.messageId,
    tag: message.tag ?? null,
    keys: [...message.keys].sort(),
    properties: Object.fromEntries(message.properties),
    group: message.messageGroup ?? null,
    lite: message.liteTopic || null,
    priority: message.priority ?? null,
    attempt: message.deliveryAttempt,
    born_host: Boolean(message.bornHost),
    at: Date.now() / 1000,
  };
}

/** "fail 2 ..." fails twice, and then succeeds. */
function refuses(body, count) {
  const words = body.split(' ');
  return words[0] === 'fail' && count <= Number(words[1]);
}

function options({ user, secret, timeout = 30 }) {
  const common = { endpoints, namespace: '', requestTimeout: timeout * 1000, logger: quiet };
  return user ? { ...common, sessionCredentials: { accessKey: user, accessSecret: secret } } : common;
}

function listener(collected) {
  const counts = new Map();
  return {
    async consume(message) {
      const found = described(message);
      collected.push(found);
      const count = (counts.get(found.body) ?? 0) + 1;
      counts.set(found.body, count);
      return refuses(found.body, count) ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
    },
  };
}

function expression(kind, text) {
  return new FilterExpression(text, kind === 'sql' ? FilterType.SQL : FilterType.TAG);
}

function expressions(subscriptions) {
  return new Map(
    Object.entries(subscriptions).map(([topic, [kind, text]]) => [topic, expression(kind, text)]),
  );
}

async function start(name, client) {
  await client.startup();
  clients.set(name, client);
}

const operations = {
  async producer({ name, topics, checks, ...more }) {
    asked.set(name, []);
    const checker = {
      async check(message) {
        const body = message.body.toString();
        asked.get(name).push(body);
        if (body.startsWith('late commit')) return TransactionResolution.COMMIT;
        if (body.startsWith('late rollback')) return TransactionResolution.ROLLBACK;
        return TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED;
      },
    };
    await start(name, new Producer({ ...options(more), topics, ...(checks ? { checker } : {}) }));
  },

  async send({ client, message, transaction }) {
    const made = {
      topic: message.topic,
      body: Buffer.from(message.body.repeat(message.times ?? 1)),
      tag: message.tag,
      keys: message.keys ?? [],
      properties: new Map(Object.entries(message.properties ?? {})),
      messageGroup: message.group,
      liteTopic: message.lite,
      priority: message.priority,
      ...(message.delay === undefined
        ? {} : { deliveryTimestamp: new Date(Date.now() + message.delay * 1000) }),
    };
    const producer = clients.get(client);
    let begun;
    if (transaction) {
      begun = producer.beginTransaction();
      transactions.set(transaction, begun);
    }
    const receipt = await producer.send(made, begun);
    return { id: receipt.messageId, recall: receipt.recallHandle || null };
  },

  async end({ transaction, commits }) {
    const begun = transactions.get(transaction);
    await (commits ? begun.commit() : begun.rollback());
  },

  async asked({ client }) {
    return asked.get(client);
  },

  async recall({ client, topic, handle }) {
    return (await clients.get(client).recallMessage(topic, handle)).messageId;
  },

  async simple({ name, group, subscriptions, wait = 5, ...more }) {
    await start(name, new SimpleConsumer({
      ...options(more),
      consumerGroup: group,
      subscriptions: expressions(subscriptions),
      awaitDuration: wait * 1000,
    }));
  },

  async receive({ client, most, hidden }) {
    const messages = await clients.get(client).receive(most, hidden * 1000);
    return messages.map((message) => ({ ...described(message), receipt: receipts.push(message) - 1 }));
  },

  async ack({ client, receipt }) {
    await clients.get(client).ack(receipts[receipt]);
  },

  async hide({ client, receipt, seconds }) {
    await clients.get(client).changeInvisibleDuration(receipts[receipt], seconds * 1000);
  },

  async push({ name, group, subscriptions, ...more }) {
    const collected = [];
    seen.set(name, collected);
    await start(name, new PushConsumer({
      ...options(more),
      consumerGroup: group,
      subscriptions: expressions(subscriptions),
      messageListener: listener(collected),
    }));
  },

  async lite_push({ name, group, topic, ...more }) {
    const collected = [];
    seen.set(name, collected);
    clients.set(name, await new LitePushConsumerBuilder()
      .setClientConfiguration(options(more))
      .setConsumerGroup(group)
      .bindTopic(topic)
      .setMessageListener(listener(collected))
      .build());
  },

  async follow({ client, lite }) {
    await clients.get(client).subscribeLite(lite);
  },

  async unfollow({ client, lite }) {
    await clients.get(client).unsubscribeLite(lite);
  },

  async seen({ client, begin = 0 }) {
    return seen.get(client).slice(begin);
  },

  async subscribe({ client, topic, kind, text }) {
    await clients.get(client).subscribe(topic, expression(kind, text));
  },

  async close({ client }) {
    const closed = clients.get(client);
    clients.delete(client);
    await closed.shutdown();
  },
};

async function answer({ n, do: name, ...wanted }) {
  let found;
  try {
    found = { n, is: (await operations[name](wanted)) ?? null };
  } catch (error) {
    found = { n, error: { kind: error.constructor.name, code: error.code ?? null, text: error.message } };
  }
  process.stdout.write(`${JSON.stringify(found)}\n`);
}

// What the client does on its own may fail while a server is away; it tries again.
process.on('unhandledRejection', () => {});
const input = createInterface({ input: process.stdin });
input.on('line', (line) => answer(JSON.parse(line)));
input.on('close', () => process.exit(0));
