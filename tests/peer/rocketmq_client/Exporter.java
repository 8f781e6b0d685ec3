import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Asks a cluster for what rocketmq-exporter makes metrics of, and names it as its metrics. */
final class Exporter implements AutoCloseable {
    private static final long MASTER = 0;
    private static final String[] OF_TOPICS = {"TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE"};
    private static final String[] OF_GROUPS = {"GROUP_GET_NUMS", "GROUP_GET_SIZE", "SNDBCK_PUT_NUMS"};
    private static final String[] OF_BROKERS = {"BROKER_PUT_NUMS", "BROKER_GET_NUMS"};

    private final DefaultMQAdminExt admin = new DefaultMQAdminExt(10_000);
    private final DefaultMQPullConsumer puller = new DefaultMQPullConsumer("TOOLS_CONSUMER");
    private final Seen seen = new Seen();

    Exporter(String names) throws Exception {
        admin.setNamesrvAddr(names);
        admin.setInstanceName(Rig.instance());
        admin.start();
        puller.setNamesrvAddr(names);
        puller.setInstanceName(Rig.instance());
        puller.start();
    }

    Map<String, ?> all() throws Exception {
        // Rates are those of the last minute, which passes while a busy machine asks for all else.
        var brokers = admin.examineBrokerClusterInfo().getBrokerAddrTable().values();
        for (var broker : brokers) {
            for (String kind : OF_BROKERS) {
                rate(kind, broker.getCluster(), broker.getBrokerAddrs().get(MASTER), broker.getCluster());
            }
        }
        Set<String> topics = admin.fetchAllTopicList().getTopicList();
        for (String topic : topics) {
            if (!topic.startsWith("%")) {
                rates(topic);
            }
        }
        for (String topic : topics) {
            offsets(topic);
            if (!topic.startsWith("%DLQ%")) {
                consumers(topic);
            }
        }
        for (var broker : brokers) {
            String address = broker.getBrokerAddrs().get(MASTER);
            var producers = admin.getAllProducerInfo(address).getData();
            producers.forEach((group, members) -> seen.add("producer_count", group, members.size()));
            admin.fetchBrokerRuntimeStats(address).getTable().forEach((key, value) ->
                seen.add("brokeruntime", key, value));
        }
        return seen.values;
    }

    private void offsets(String topic) throws Exception {
        Map<String, Long> ends = new TreeMap<>();
        Map<String, Boolean> written = new TreeMap<>();
        admin.examineTopicStats(topic).getOffsetTable().forEach((queue, offsets) -> {
            ends.merge(queue.getBrokerName(), offsets.getMaxOffset(), Long::sum);
            written.merge(queue.getBrokerName(), offsets.getLastUpdateTimestamp() > 0, Boolean::logicalOr);
        });
        ends.forEach((broker, end) -> seen.add("producer_offset", broker + " " + topic, end));
        written.forEach((broker, any) -> seen.add("producer_offset_written", broker + " " + topic, any));
    }

    private void rates(String topic) throws Exception {
        for (var broker : admin.examineTopicRouteInfo(topic).getBrokerDatas()) {
            String address = broker.getBrokerAddrs().get(MASTER);
            for (String kind : OF_TOPICS) {
                rate(kind, topic, address, topic);
            }
            for (String group : admin.queryTopicConsumeByWho(topic).getGroupList()) {
                for (String kind : OF_GROUPS) {
                    rate(kind, topic + "@" + group, address, topic + "@" + group);
                }
            }
        }
    }

    /** Rates differ from run to run, and of most it is known only whether there is any. */
    private void rate(String kind, String labels, String address, String key) {
        seen.ask(kind, labels, () -> admin.viewBrokerStatsData(address, kind, key).getStatsMinute().getTps() > 0);
    }

    private void consumers(String topic) throws Exception {
        for (String group : admin.queryTopicConsumeByWho(topic).getGroupList()) {
            String labels = topic + " " + group;
            seen.ask("group_count", labels, () -> admin.examineConsumerConnectionInfo(group).getConnectionSet().size());
            seen.ask("group_model", labels, () -> admin.examineConsumerConnectionInfo(group).getMessageModel().name());
            var stats = admin.examineConsumeStats(group, topic);
            seen.add("group_diff", labels, stats.computeTotalDiff());
            long consumed = 0;
            for (var each : stats.getOffsetTable().entrySet()) {
                long offset = each.getValue().getConsumerOffset();
                consumed += offset;
                seen.ask("group_get_latency_by_storetime", labels + " " + each.getKey().getQueueId(), () ->
                    puller.pull(each.getKey(), "*", offset, 1).getPullStatus().name());
            }
            seen.add("consumer_offset", labels, consumed);
            clients(group);
        }
    }

    private void clients(String group) {
        try {
            for (var connection : admin.examineConsumerConnectionInfo(group).getConnectionSet()) {
                var running = admin.getConsumerRunningInfo(group, connection.getClientId(), false);
                running.getStatusTable().forEach((topic, status) -> {
                    seen.add("client_consume_fail_msg_count", group + " " + topic, status.getConsumeFailedMsgs());
                    seen.add("client_consume_ok_msg_tps", group + " " + topic, status.getConsumeOKTPS() >= 0);
                });
            }
        } catch (Exception error) {
            seen.add("client_consume_fail_msg_count", group, error.getClass().getSimpleName());
        }
    }

    @Override
    public void close() {
        admin.shutdown();
        puller.shutdown();
    }
}
