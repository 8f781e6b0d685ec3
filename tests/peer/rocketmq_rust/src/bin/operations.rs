//! RocketMQ's gRPC client for Rust, which does what its input asks.
//!
//! `operations ENDPOINT`: the lines of its input and output are those of ../grpc/programs/python/main.py.
//! It has producers and simple consumers, which are all that the client has.

use std::collections::HashMap;
use std::error::Error;
use std::io::Write;
use std::process::exit;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::{MessageBuilder, MessageView};
use rocketmq::{Producer, SimpleConsumer};
use serde_json::{json, Value};
use tokio::io::{AsyncBufReadExt, BufReader};

type Failure = Box<dyn Error + Send + Sync>;

struct Consumer {
    client: SimpleConsumer,
    topic: String,
    expression: FilterExpression,
}

struct Operations {
    endpoint: String,
    producers: Mutex<HashMap<String, Arc<Producer>>>,
    consumers: Mutex<HashMap<String, Arc<Consumer>>>,
    receipts: Mutex<Vec<Arc<MessageView>>>,
}

fn text(wanted: &Value, name: &str) -> String {
    wanted[name].as_str().unwrap_or_default().to_string()
}

fn described(message: &MessageView) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    json!({
        "topic": message.topic(),
        "body": String::from_utf8_lossy(message.body()),
        "id": message.message_id(),
        "group": message.message_group(),
        "attempt": message.delivery_attempt(),
        "at": now.as_secs_f64(),
    })
}

impl Operations {
    fn options(&self, wait: u64) -> ClientOption {
        let mut option = ClientOption::default();
        option.set_access_url(self.endpoint.clone());
        option.set_enable_tls(false);
        option.set_timeout(Duration::from_secs(30));
        option.set_long_polling_timeout(Duration::from_secs(wait));
        option
    }

    async fn producer(&self, wanted: &Value) -> Result<Value, Failure> {
        let topics = wanted["topics"].as_array().ok_or("no topics")?;
        let mut option = ProducerOption::default();
        option.set_topics(topics.iter().filter_map(Value::as_str).collect());
        let mut client = Producer::new(option, self.options(5))?;
        client.start().await?;
        self.producers.lock().unwrap().insert(text(wanted, "name"), Arc::new(client));
        Ok(Value::Null)
    }

    async fn send(&self, wanted: &Value) -> Result<Value, Failure> {
        let name = text(wanted, "client");
        let client = self.producers.lock().unwrap().get(&name).cloned().ok_or("no such producer")?;
        let message = &wanted["message"];
        let (topic, body) = (text(message, "topic"), text(message, "body").into_bytes());
        let builder = match message["group"].as_str() {
            Some(group) => MessageBuilder::fifo_message_builder(topic, body, group),
            None => MessageBuilder::builder().set_topic(topic).set_body(body),
        };
        let receipt = client.send(builder.build()?).await?;
        Ok(json!({"id": receipt.message_id(), "recall": null}))
    }

    async fn simple(&self, wanted: &Value) -> Result<Value, Failure> {
        let subscriptions = wanted["subscriptions"].as_object().ok_or("no subscriptions")?;
        let (topic, pair) = subscriptions.iter().next().ok_or("no subscription")?;
        let kind = if pair[0] == "sql" { FilterType::Sql } else { FilterType::Tag };
        let expression = FilterExpression::new(kind, pair[1].as_str().ok_or("no expression")?);
        let mut option = SimpleConsumerOption::default();
        option.set_topics(vec![topic]);
        option.set_consumer_group(text(wanted, "group"));
        let wait = wanted["wait"].as_u64().unwrap_or(5);
        let mut client = SimpleConsumer::new(option, self.options(wait))?;
        client.start().await?;
        let consumer = Consumer { client, topic: topic.clone(), expression };
        self.consumers.lock().unwrap().insert(text(wanted, "name"), Arc::new(consumer));
        Ok(Value::Null)
    }

    fn consumer(&self, wanted: &Value) -> Result<Arc<Consumer>, Failure> {
        let name = text(wanted, "client");
        Ok(self.consumers.lock().unwrap().get(&name).cloned().ok_or("no such consumer")?)
    }

    async fn receive(&self, wanted: &Value) -> Result<Value, Failure> {
        let consumer = self.consumer(wanted)?;
        let most = wanted["most"].as_i64().unwrap_or(32) as i32;
        let hidden = Duration::from_secs(wanted["hidden"].as_u64().ok_or("no time")?);
        let messages =
            consumer.client.receive_with(&consumer.topic, &consumer.expression, most, hidden).await?;
        let mut found = Vec::new();
        let mut receipts = self.receipts.lock().unwrap();
        for message in messages {
            let mut shown = described(&message);
            shown["receipt"] = json!(receipts.len());
            receipts.push(Arc::new(message));
            found.push(shown);
        }
        Ok(json!(found))
    }

    async fn ack(&self, wanted: &Value) -> Result<Value, Failure> {
        let number = wanted["receipt"].as_u64().ok_or("no receipt")? as usize;
        let message = self.receipts.lock().unwrap().get(number).cloned().ok_or("no such receipt")?;
        self.consumer(wanted)?.client.ack(&*message).await?;
        Ok(Value::Null)
    }

    /// Ends a client that nothing uses; otherwise, it ends with its last call.
    async fn close(&self, wanted: &Value) -> Result<Value, Failure> {
        let name = text(wanted, "client");
        let producer = self.producers.lock().unwrap().remove(&name);
        if let Some(Ok(client)) = producer.map(Arc::try_unwrap) {
            client.shutdown().await?;
        }
        let consumer = self.consumers.lock().unwrap().remove(&name);
        if let Some(Ok(consumer)) = consumer.map(Arc::try_unwrap) {
            consumer.client.shutdown().await?;
        }
        Ok(Value::Null)
    }

    async fn run(&self, wanted: &Value) -> Result<Value, Failure> {
        match wanted["do"].as_str() {
            Some("producer") => self.producer(wanted).await,
            Some("send") => self.send(wanted).await,
            Some("simple") => self.simple(wanted).await,
            Some("receive") => self.receive(wanted).await,
            Some("ack") => self.ack(wanted).await,
            Some("close") => self.close(wanted).await,
            other => Err(format!("the client for Rust cannot do {other:?}").into()),
        }
    }
}

fn failure(text: String) -> Value {
    json!({"kind": "ClientError", "code": null, "text": text})
}

/// Does what a line asks, and answers; the client panics if it cannot connect.
async fn answer(operations: Arc<Operations>, wanted: Value) {
    let number = wanted["n"].clone();
    let done = tokio::spawn(async move { operations.run(&wanted).await }).await;
    let answer = match done {
        Ok(Ok(found)) => json!({"n": number, "is": found}),
        Ok(Err(error)) => json!({"n": number, "error": failure(error.to_string())}),
        Err(panic) => json!({"n": number, "error": failure(panic.to_string())}),
    };
    let mut output = std::io::stdout().lock();
    let written = writeln!(output, "{answer}").and_then(|()| output.flush());
    if written.is_err() {
        exit(0); // Nobody reads the answers any more.
    }
}

#[tokio::main]
async fn main() {
    let operations = Arc::new(Operations {
        endpoint: std::env::args().nth(1).expect("the address of a gRPC port"),
        producers: Mutex::default(),
        consumers: Mutex::default(),
        receipts: Mutex::default(),
    });
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let wanted = serde_json::from_str(&line).expect("a line of JSON");
        tokio::spawn(answer(operations.clone(), wanted));
    }
    exit(0); // The clients leave tasks behind.
}
