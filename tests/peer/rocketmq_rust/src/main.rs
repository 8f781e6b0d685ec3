//! Sends messages of every type that RocketMQ's client for Rust has, and receives them.
//!
//! The argument is the address of a gRPC port. Prints one JSON object with
//! the messages of each topic, in the order in which they came.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::{Message, MessageBuilder, MessageView};
use rocketmq::model::transaction::{Transaction, TransactionResolution};
use rocketmq::{Producer, SimpleConsumer};
use serde_json::{json, Value};

const TOPICS: [&str; 4] = ["Normal", "Fifo", "Later", "Half"];

fn client(address: &str) -> ClientOption {
    let mut option = ClientOption::default();
    option.set_access_url(address);
    option.set_enable_tls(false);
    option.set_timeout(Duration::from_secs(60));
    option.set_long_polling_timeout(Duration::from_secs(8));
    option
}

/// Returns a moment as the client takes it: seconds since 1970.
fn seconds_from_now(more: u64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    (now.as_secs() + more) as i64
}

async fn send(producer: &Producer, message: impl Message) -> String {
    producer.send(message).await.unwrap().message_id().to_string()
}

/// Sends the messages; returns how many will come, and the ids of those of the topic Normal.
async fn produce(address: &str) -> (usize, Vec<String>) {
    let mut option = ProducerOption::default();
    option.set_topics(TOPICS.to_vec());
    let check = Box::new(|_: String, _: MessageView| TransactionResolution::COMMIT);
    let mut producer =
        Producer::new_transaction_producer(option, client(address), check).unwrap();
    producer.start().await.unwrap();
    let mut ids = Vec::new();
    for number in 0..6 {
        let message = MessageBuilder::builder()
            .set_topic("Normal")
            .set_tag(if number % 2 == 0 { "even" } else { "odd" })
            .set_keys(vec![format!("key-{number}")])
            .set_properties(HashMap::from([("number", number.to_string())]))
            .set_body(format!("normal {number}").into_bytes())
            .build()
            .unwrap();
        ids.push(send(&producer, message).await);
    }
    for number in 0..4 {
        let body = format!("fifo {number}").into_bytes();
        let message = MessageBuilder::fifo_message_builder("Fifo", body, "one group");
        send(&producer, message.build().unwrap()).await;
    }
    let at = seconds_from_now(2);
    let message = MessageBuilder::delay_message_builder("Later", b"later".to_vec(), at);
    send(&producer, message.build().unwrap()).await;
    for is_committed in [true, false] {
        let body = format!("committed {is_committed}").into_bytes();
        let message = MessageBuilder::transaction_message_builder("Half", body);
        let sent = producer.send_transaction_message(message.build().unwrap()).await.unwrap();
        if is_committed {
            sent.commit().await.unwrap();
        } else {
            sent.rollback().await.unwrap();
        }
    }
    producer.shutdown().await.unwrap();
    (3 + 4 + 1 + 1, ids) // The odd ones of Normal are filtered out, and one is rolled back.
}

fn described(message: &MessageView, ids: &[String]) -> Value {
    json!({
        "body": String::from_utf8_lossy(message.body()),
        "tag": message.tag(),
        "keys": message.keys(),
        "properties": message.properties().iter().collect::<BTreeMap<_, _>>(),
        "group": message.message_group(),
        "attempt": message.delivery_attempt(),
        "is as sent": ids.iter().any(|id| id == message.message_id()),
    })
}

#[tokio::main]
async fn main() {
    let address = std::env::args().nth(1).expect("the address of a gRPC port");
    let (most, ids) = produce(&address).await;
    let mut option = SimpleConsumerOption::default();
    option.set_topics(TOPICS.to_vec());
    option.set_consumer_group("rust");
    let mut consumer = SimpleConsumer::new(option, client(&address)).unwrap();
    consumer.start().await.unwrap();
    let mut found: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let mut count = 0;
    while count < most {
        for topic in TOPICS {
            let tag = if topic == "Normal" { "even" } else { "*" };
            let filter = FilterExpression::new(FilterType::Tag, tag);
            let time = Duration::from_secs(600);
            let messages = consumer.receive_with(topic, &filter, 32, time).await.unwrap();
            for message in messages {
                consumer.ack(&message).await.unwrap();
                found.entry(topic).or_default().push(described(&message, &ids));
                count += 1;
            }
        }
    }
    consumer.shutdown().await.unwrap();
    println!("{}", json!(found));
}
