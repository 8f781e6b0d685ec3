package org.apache.rocketmq.test.grpc.v2;

import apache.rocketmq.v2.QueryRouteResponse;
import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import java.lang.reflect.Field;
import java.time.Duration;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.proxy.config.ConfigurationManager;
import org.awaitility.Awaitility;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;

/**
 * The tests of RocketMQ's GrpcBaseIT at a gRPC endpoint in another process, mqlake.grpc. RocketMQ's ClusterGrpcIT and
 * LocalGrpcIT do the same at a proxy that they start. A route has mqlake.queues queues.
 */
public class RemoteGrpcIT extends GrpcBaseIT {
    private ManagedChannel channel;

    @Before
    @Override
    public void setUp() throws Exception {
        super.setUp();
        System.setProperty(MixAll.NAMESRV_ADDR_PROPERTY, NAMESRV_ADDR); // for clients without an address
        int port = Integer.getInteger("mqlake.grpc");
        ConfigurationManager.getProxyConfig().setGrpcServerPort(port);
        Field requested = GrpcBaseIT.class.getDeclaredField("port"); // of the endpoints in requests
        requested.setAccessible(true);
        requested.setInt(this, port);
        channel = NettyChannelBuilder.forAddress("127.0.0.1", port).usePlaintext().build();
        blockingStub = createBlockingStub(channel);
        stub = createStub(channel);
    }

    @After
    public void tearDown() {
        channel.shutdownNow();
        shutdown();
    }

    @Test
    public void testQueryRoute() {
        String topic = initTopic();
        QueryRouteResponse[] last = new QueryRouteResponse[1];
        int queues = Integer.getInteger("mqlake.queues");
        Awaitility.await().atMost(Duration.ofSeconds(10)).until(() -> {
            last[0] = blockingStub.queryRoute(buildQueryRouteRequest(topic));
            return last[0].getMessageQueuesCount() == queues;
        });
        assertQueryRoute(last[0], queues);
    }

    @Test
    @Override
    public void testQueryAssignment() throws Exception {
        super.testQueryAssignment();
    }

    @Test
    @Override
    public void testQueryFifoAssignment() throws Exception {
        super.testQueryFifoAssignment();
    }

    @Test
    @Override
    public void testTransactionCheckThenCommit() {
        super.testTransactionCheckThenCommit();
    }

    @Test
    @Override
    public void testSimpleConsumerSendAndRecvDelayMessage() throws Exception {
        super.testSimpleConsumerSendAndRecvDelayMessage();
    }

    @Test
    @Override
    public void testSimpleConsumerSendAndRecallDelayMessage() throws Exception {
        super.testSimpleConsumerSendAndRecallDelayMessage();
    }

    @Test
    @Override
    public void testSimpleConsumerSendAndRecvBigMessage() throws Exception {
        super.testSimpleConsumerSendAndRecvBigMessage();
    }

    @Test
    @Override
    public void testSimpleConsumerSendAndRecv() throws Exception {
        super.testSimpleConsumerSendAndRecv();
    }

    @Test
    @Override
    public void testSimpleConsumerToDLQ() throws Exception {
        super.testSimpleConsumerToDLQ();
    }

    @Test
    @Override
    public void testConsumeOrderly() throws Exception {
        super.testConsumeOrderly();
    }

    @Test
    @Override
    public void testSimpleConsumerSendAndRecvPriorityMessage() throws Exception {
        super.testSimpleConsumerSendAndRecvPriorityMessage();
    }
}
