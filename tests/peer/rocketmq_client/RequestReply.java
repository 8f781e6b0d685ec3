import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Requests that a consumer answers; the answer goes through the broker to the one who asked. */
final class RequestReply implements Features.Feature {
    private static final int MILLISECONDS = 60_000;

    @Override
    public Map<String, ?> run(Rig rig) throws Exception {
        rig.awaitTopic(4);
        var replier = rig.started(new DefaultMQProducer("R_" + rig.topic));
        var consumer = rig.consumer("G_" + rig.topic);
        consumer.subscribe(rig.topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (batch, context) -> {
            try {
                for (MessageExt message : batch) {
                    byte[] body = ("reply to " + Rig.body(message)).getBytes();
                    replier.send(MessageUtil.createReplyMessage(message, body), 5000);
                }
            } catch (Exception error) {
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Message reply = rig.producer().request(rig.message("sync"), MILLISECONDS);
        var later = new CompletableFuture<String>();
        rig.producer().request(rig.message("async"), new RequestCallback() {
            @Override
            public void onSuccess(Message answer) {
                later.complete(new String(answer.getBody()));
            }

            @Override
            public void onException(Throwable error) {
                later.completeExceptionally(error);
            }
        }, MILLISECONDS);
        String async = later.get(MILLISECONDS, TimeUnit.MILLISECONDS);
        return Map.of("sync", new String(reply.getBody()), "async", async);
    }
}
