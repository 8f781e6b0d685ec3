// Features of RocketMQ's gRPC client for Node.js (rocketmq-client-nodejs), all at the same time.
//
// `node main.js ENDPOINT PREFIX` prints one JSON object with what happened in each feature;
// `tests/peer/test_grpc_clients.py` judges it.
'use strict';

const {
  ConsumeResult, Producer, PushConsumer, SimpleConsumer,
} = require('rocketmq-client-nodejs');
const { TransactionResolution } = require('rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb');

const SECONDS = 150; // for which a feature waits
const [endpoints, prefix] = process.argv.slice(2);
const quiet = { info() {}, warn() {}, error() {}, debug() {} };
const options = { endpoints, namespace: '', requestTimeout: 30_000, logger: quiet };

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function until(what, isSo) {
  const end = Date.now() + SECONDS * 1000;
  while (!isSo()) {
    if (Date.now() > end) throw new Error(`waited in vain for ${what()}`);
    await sleep(20);
  }
}

function describe(message) {
  return {
    body: message.body.toString(),
    id: message.messageId,
    tag: message.tag ?? null,
    keys: message.keys,
    properties: Object.fromEntries(message.properties),
    group: message.messageGroup ?? null,
    attempt: message.deliveryAttempt,
    words: message.receiptHandle.split(' ').length,
    at: Date.now(),
  };
}

function fresh(topic, body, tag, key) {
  return {
    topic,
    body: Buffer.from(body),
    tag,
    keys: key === undefined ? [] : [key],
    properties: tag === undefined ? new Map() : new Map([['colour', 'blue']]),
  };
}

async function producerOf(topic, more) {
  const producer = new Producer({ ...options, topic, ...more });
  await producer.startup();
  return producer;
}

/** Collects messages; fails once on those whose bodies begin with "retry". */
async function push(topic, expression = '*') {
  const consumed = [];
  const consumer = new PushConsumer({
    ...options,
    consumerGroup: `G_${topic}`,
    subscriptions: new Map([[topic, expression]]),
    messageListener: {
      async consume(message) {
        const described = describe(message);
        consumed.push(described);
        const isFailure = described.body.startsWith('retry') && described.attempt === 1;
        return isFailure ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
      },
    },
  });
  await consumer.startup();
  const attempts = () => new Set(consumed.map(({ body, attempt }) => `${body} ${attempt}`)).size;
  const wait = (count) => until(() => `${attempts()} of ${count} messages`, () => attempts() >= count);
  return { consumer, consumed, wait };
}

const features = {
  async send(topic) {
    const { consumer, consumed, wait } = await push(topic, 'TagA || TagB');
    const producer = await producerOf(topic);
    const sent = {};
    const send = async (body, tag, key) => {
      sent[body] = (await producer.send(fresh(topic, body, tag, key))).messageId;
    };
    for (let number = 0; number < 8; number++) await send(`sync ${number}`, 'TagA', `key${number}`);
    await Promise.all([...Array(8).keys()].map((number) => send(`async ${number}`, 'TagB')));
    await send('another tag', 'TagC');
    await send('retry', 'TagA');
    await send('large '.repeat(2000), 'TagA');
    await wait(19);
    await consumer.shutdown();
    await producer.shutdown();
    return { sent, consumed };
  },

  async simple(topic) {
    const producer = await producerOf(topic);
    for (let number = 0; number < 5; number++) await producer.send(fresh(topic, `${number}`));
    const consumer = new SimpleConsumer({
      ...options,
      consumerGroup: `G_${topic}`,
      subscriptions: new Map([[topic, '*']]),
      awaitDuration: 5000,
    });
    await consumer.startup();
    // Acknowledges at once what is not to come again while it waits for others.
    const receive = async (count, acknowledges = false) => {
      const messages = [];
      const end = Date.now() + SECONDS * 1000;
      while (messages.length < count) {
        if (Date.now() > end) throw new Error(`${messages.length} of ${count} messages`);
        for (const message of await consumer.receive(32, 10_000)) {
          if (acknowledges) await consumer.ack(message);
          messages.push(message);
        }
      }
      return messages;
    };
    const messages = await receive(5);
    const first = messages.map(describe);
    const byBody = new Map(messages.map((message) => [message.body.toString(), message]));
    for (const body of ['0', '1']) await consumer.ack(byBody.get(body));
    await consumer.changeInvisibleDuration(byBody.get('2'), 1000);
    await consumer.changeInvisibleDuration(byBody.get('3'), 300_000);
    await consumer.ack(byBody.get('3'));
    const again = await receive(2, true);
    const left = await consumer.receive(32, 10_000);
    await consumer.shutdown();
    await producer.shutdown();
    return { first, again: again.map(describe), left: left.map((message) => message.body.toString()) };
  },

  async delay(topic) {
    const { consumer, consumed, wait } = await push(topic);
    const producer = await producerOf(topic);
    const due = {};
    for (const seconds of [3, 5]) {
      const deliveryTimestamp = new Date(Date.now() + seconds * 1000);
      due[`after ${seconds}`] = deliveryTimestamp.getTime();
      await producer.send({ ...fresh(topic, `after ${seconds}`), deliveryTimestamp });
    }
    await wait(2);
    await consumer.shutdown();
    await producer.shutdown();
    return { due, consumed };
  },

  async fifo(topic) {
    const { consumer, consumed, wait } = await push(topic);
    const producer = await producerOf(topic);
    for (let number = 0; number < 6; number++) {
      for (const messageGroup of ['one', 'two', 'three']) {
        await producer.send({ ...fresh(topic, `${messageGroup} ${number}`), messageGroup });
      }
    }
    await wait(18);
    await consumer.shutdown();
    await producer.shutdown();
    return { consumed };
  },

  async transaction(topic) {
    const { consumer, consumed, wait } = await push(topic);
    const asked = new Set();
    const checker = {
      async check(message) {
        const body = message.body.toString();
        if (body.startsWith('late')) asked.add(body); // RocketMQ may ask for those that were just ended, too
        if (!body.startsWith('late')) return TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED; // its end is on the way
        return body.startsWith('late commit') ? TransactionResolution.COMMIT : TransactionResolution.ROLLBACK;
      },
    };
    const producer = await producerOf(topic, { checker });
    for (let number = 0; number < 2; number++) {
      for (const ending of ['commit', 'rollback', 'late commit', 'late rollback']) {
        const transaction = producer.beginTransaction();
        await producer.send(fresh(topic, `${ending} ${number}`), transaction);
        if (ending === 'commit') await transaction.commit();
        if (ending === 'rollback') await transaction.rollback();
      }
    }
    await wait(4);
    await until(() => 'all questions', () => asked.size >= 4);
    await consumer.shutdown();
    await producer.shutdown();
    return { asked: [...asked], consumed };
  },
};

async function main() {
  const happened = {};
  await Promise.all(Object.entries(features).map(async ([name, feature]) => {
    try {
      happened[name] = await feature(`${prefix}_${name}`);
    } catch (error) {
      happened[name] = { failure: error.stack };
    }
  }));
  process.stdout.write(`${JSON.stringify(happened)}\n`, () => process.exit(0));
}

main();
