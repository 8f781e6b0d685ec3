// The Go client does what is asked of it with the broker that a name server knows, and says as one
// JSON object what happened. Arguments: the name server, then a topic each to send to, to order,
// and to delay. The topics have four queues. The variables ACCESS_KEY and SECRET_KEY name a user.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const patience = 60 * time.Second

type message struct {
	Body   string            `json:"body"`
	Queue  int               `json:"queue"`
	Offset int64             `json:"offset"`
	Tags   string            `json:"tags"`
	Keys   string            `json:"keys"`
	At     int64             `json:"at"`
	All    map[string]string `json:"properties"`
}

type collected struct {
	sync.Mutex
	messages []message
}

func (c *collected) add(received ...*primitive.MessageExt) {
	c.Lock()
	defer c.Unlock()
	for _, each := range received {
		c.messages = append(c.messages, message{
			string(each.Body), each.Queue.QueueId, each.QueueOffset, each.GetTags(),
			each.GetKeys(), time.Now().UnixMilli(), each.GetProperties(),
		})
	}
}

func (c *collected) await(count int) []message {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		c.Lock()
		different := map[string]bool{}
		for _, each := range c.messages {
			different[each.Body] = true
		}
		if len(different) >= count {
			defer c.Unlock()
			return c.messages
		}
		c.Unlock()
	}
	panic(fmt.Sprintf("waited in vain for %d messages", count))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

var names []string

func user() primitive.Credentials {
	return primitive.Credentials{AccessKey: os.Getenv("ACCESS_KEY"), SecretKey: os.Getenv("SECRET_KEY")}
}

func consume(topic string, tags string, isOrdered bool) *collected {
	found := &collected{}
	made, err := rocketmq.NewPushConsumer(
		consumer.WithGroupName("G_"+topic),
		consumer.WithNsResolver(primitive.NewPassthroughResolver(names)),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumerOrder(isOrdered),
		consumer.WithInstance("consumer-"+topic),
		consumer.WithCredentials(user()),
	)
	must(err)
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: tags}
	must(made.Subscribe(topic, selector, func(_ context.Context, received ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		found.add(received...)
		return consumer.ConsumeSuccess, nil
	}))
	must(made.Start())
	return found
}

func start(name string, options ...producer.Option) rocketmq.Producer {
	options = append(options,
		producer.WithNsResolver(primitive.NewPassthroughResolver(names)),
		producer.WithSendMsgTimeout(patience), // a late answer is no failure
		producer.WithCredentials(user()),
		producer.WithGroupName("P_"+name), producer.WithInstanceName("producer-"+name))
	made, err := rocketmq.NewProducer(options...)
	must(err)
	must(made.Start())
	return made
}

func sendAll(topic string) map[string]any {
	made := start(topic)
	defer made.Shutdown()
	statuses := []primitive.SendStatus{}
	for number := 0; number < 8; number++ {
		sent := primitive.NewMessage(topic, []byte(fmt.Sprintf("sync %d", number)))
		sent.WithTag("TagA").WithKeys([]string{fmt.Sprintf("key%d", number)}).WithProperty("colour", "blue")
		result, err := made.SendSync(context.Background(), sent)
		must(err)
		statuses = append(statuses, result.Status)
	}
	var done sync.WaitGroup
	for number := 0; number < 8; number++ {
		done.Add(1)
		sent := primitive.NewMessage(topic, []byte(fmt.Sprintf("async %d", number))).WithTag("TagA")
		must(made.SendAsync(context.Background(), func(_ context.Context, result *primitive.SendResult, err error) {
			must(err)
			done.Done()
		}, sent))
	}
	done.Wait()
	other := primitive.NewMessage(topic, []byte("not wanted")).WithTag("TagB")
	must(made.SendOneWay(context.Background(), other))
	for number := 0; number < 8; number++ {
		sent := primitive.NewMessage(topic, []byte(fmt.Sprintf("oneway %d", number))).WithTag("TagA")
		must(made.SendOneWay(context.Background(), sent))
	}
	batch := []*primitive.Message{}
	for number := 0; number < 8; number++ {
		batch = append(batch, primitive.NewMessage(topic, []byte(fmt.Sprintf("batch %d", number))).WithTag("TagA"))
	}
	result, err := made.SendSync(context.Background(), batch...)
	must(err)
	statuses = append(statuses, result.Status)
	return map[string]any{"statuses": statuses, "consumed": consume(topic, "TagA", false).await(32)}
}

func sendInOrder(topic string) []message {
	made := start(topic, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	defer made.Shutdown()
	for number := 0; number < 10; number++ {
		for shard := 0; shard < 6; shard++ {
			sent := primitive.NewMessage(topic, []byte(fmt.Sprintf("%d %d", shard, number)))
			sent.WithShardingKey(fmt.Sprint(shard))
			_, err := made.SendSync(context.Background(), sent)
			must(err)
		}
	}
	return consume(topic, "*", true).await(60)
}

func sendDelayed(topic string) map[string]any {
	made := start(topic)
	defer made.Shutdown()
	found := consume(topic, "*", false)
	sent := map[string]int64{}
	for level := 0; level < 3; level++ {
		body := fmt.Sprintf("level %d", level)
		sent[body] = time.Now().UnixMilli()
		delayed := primitive.NewMessage(topic, []byte(body)).WithDelayTimeLevel(level)
		_, err := made.SendSync(context.Background(), delayed)
		must(err)
	}
	return map[string]any{"sent": sent, "consumed": found.await(3)}
}

func main() {
	rlog.SetLogLevel("fatal")
	names = []string{os.Args[1]}
	answers := map[string]any{}
	var all sync.WaitGroup
	var lock sync.Mutex
	run := func(name string, feature func() any) {
		all.Add(1)
		go func() {
			defer all.Done()
			answer := feature()
			lock.Lock()
			defer lock.Unlock()
			answers[name] = answer
		}()
	}
	run("send", func() any { return sendAll(os.Args[2]) })
	run("ordered", func() any { return sendInOrder(os.Args[3]) })
	run("delay", func() any { return sendDelayed(os.Args[4]) })
	all.Wait()
	must(json.NewEncoder(os.Stdout).Encode(answers))
}
