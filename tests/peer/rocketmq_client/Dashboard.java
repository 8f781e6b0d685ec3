import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Asks a cluster for what the pages of RocketMQ Dashboard show, by the requests of its services. */
final class Dashboard implements AutoCloseable {
    private static final long MASTER = 0;
    private static final int MOST = 2000;
    private static final int SECONDS = 10;

    private final DefaultMQAdminExt admin = new DefaultMQAdminExt(10_000);
    private final DefaultMQPullConsumer puller = new DefaultMQPullConsumer("TOOLS_CONSUMER");
    private final String[] words;
    private final Seen seen = new Seen();

    /** Words are a topic, its group and producers' group that are there, and a message's unique key and key. */
    Dashboard(String names, String[] words) throws Exception {
        this.words = words;
        admin.setNamesrvAddr(names);
        admin.setInstanceName(Rig.instance());
        admin.start();
        puller.setNamesrvAddr(names);
        puller.setInstanceName(Rig.instance());
        puller.start();
    }

    Map<String, ?> all() throws Exception {
        String master = cluster();
        for (String topic : new TreeSet<>(admin.fetchAllTopicList().getTopicList())) {
            topic(topic, master);
        }
        for (String group : new TreeSet<>(admin.getAllSubscriptionGroup(master, SECONDS * 1000L)
                .getSubscriptionGroupTable().keySet())) {
            group(group, master);
        }
        producers(words[0], words[2]);
        messages(words[0], words[3], words[4]);
        changes(master);
        return seen.values;
    }

    private String cluster() throws Exception {
        var info = admin.examineBrokerClusterInfo();
        String master = null;
        for (var broker : info.getBrokerAddrTable().values()) {
            master = broker.getBrokerAddrs().get(MASTER);
            var addresses = new TreeSet<>(broker.getBrokerAddrs().keySet());
            seen.add("cluster", broker.getCluster() + " " + broker.getBrokerName(), addresses.toString());
            seen.add("cluster status", "names", new TreeSet<>(
                admin.fetchBrokerRuntimeStats(master).getTable().keySet()));
            for (var setting : admin.getBrokerConfig(master).entrySet()) {
                seen.add("cluster config", String.valueOf(setting.getKey()), setting.getValue());
            }
        }
        return master;
    }

    private void topic(String topic, String master) throws Exception {
        var route = admin.examineTopicRouteInfo(topic);
        route.getQueueDatas().forEach(queue -> seen.add("topic route", topic + " " + queue.getBrokerName(),
            List.of(queue.getReadQueueNums(), queue.getWriteQueueNums(), queue.getPerm(), queue.getTopicSysFlag())));
        Map<MessageQueue, List<Object>> status = new TreeMap<>();
        admin.examineTopicStats(topic).getOffsetTable().forEach((queue, offsets) -> status.put(queue,
            List.of(offsets.getMinOffset(), offsets.getMaxOffset(), offsets.getLastUpdateTimestamp() > 0)));
        status.forEach((queue, offsets) ->
            seen.add("topic status", topic + " " + queue.getBrokerName() + " " + queue.getQueueId(), offsets));
        seen.ask("topic config", topic, () -> {
            var config = admin.examineTopicConfig(master, topic);
            return List.of(config.getReadQueueNums(), config.getWriteQueueNums(), config.getPerm(),
                config.isOrder(), config.getTopicSysFlag());
        });
        Set<String> groups = new TreeSet<>(admin.queryTopicConsumeByWho(topic).getGroupList());
        seen.add("topic consumers", topic, groups);
        for (String group : groups) {
            consumed(topic, group);
        }
    }

    private void consumed(String topic, String group) throws Exception {
        Map<MessageQueue, List<Object>> progress = new TreeMap<>();
        admin.examineConsumeStats(group, topic).getOffsetTable().forEach((queue, offsets) -> progress.put(queue,
            List.of(offsets.getBrokerOffset(), offsets.getConsumerOffset(), offsets.getLastTimestamp() > 0)));
        progress.forEach((queue, offsets) ->
            seen.add("consumer progress", group + " " + queue.getTopic() + " " + queue.getQueueId(), offsets));
    }

    private void group(String group, String master) {
        seen.ask("consumer config", group, () -> {
            var config = admin.examineSubscriptionGroupConfig(master, group);
            return List.of(config.isConsumeEnable(), config.isConsumeBroadcastEnable(), config.getRetryQueueNums(),
                config.getRetryMaxTimes(), config.getBrokerId(), config.getWhichBrokerWhenConsumeSlowly());
        });
        seen.ask("consumer connection", group, () -> {
            var found = admin.examineConsumerConnectionInfo(group);
            Map<String, Object> shown = new LinkedHashMap<>();
            shown.put("type", found.getConsumeType().name());
            shown.put("model", found.getMessageModel().name());
            shown.put("from", found.getConsumeFromWhere().name());
            shown.put("clients", found.getConnectionSet().size());
            shown.put("languages", found.getConnectionSet().iterator().next().getLanguage().name());
            Map<String, String> subscriptions = new TreeMap<>();
            found.getSubscriptionTable().forEach((topic, data) ->
                subscriptions.put(topic, data.getSubString() + " " + data.getExpressionType()));
            shown.put("subscriptions", subscriptions);
            return shown;
        });
        seen.ask("consumer queues", group, () -> {
            Set<String> queues = new TreeSet<>();
            for (var connection : admin.examineConsumerConnectionInfo(group).getConnectionSet()) {
                admin.getConsumerRunningInfo(group, connection.getClientId(), false).getMqTable().forEach(
                    (queue, state) -> queues.add(queue.getTopic() + " " + queue.getQueueId()));
            }
            return queues;
        });
    }

    private void producers(String topic, String producers) {
        seen.ask("producer", producers, () -> {
            var found = admin.examineProducerConnectionInfo(producers, topic).getConnectionSet();
            return List.of(found.size(), found.iterator().next().getLanguage().name());
        });
    }

    private void messages(String topic, String unique, String key) throws Exception {
        seen.ask("message by id", topic, () -> shown(admin.viewMessage(topic, unique)));
        seen.ask("message by key", topic, () -> {
            List<Object> found = new ArrayList<>();
            admin.queryMessage(topic, key, 64, 0, Long.MAX_VALUE).getMessageList().forEach(each -> found.add(shown(each)));
            return found;
        });
        seen.ask("message track", topic, () -> {
            Set<String> tracks = new TreeSet<>();
            admin.messageTrackDetail(admin.viewMessage(topic, unique)).forEach(track ->
                tracks.add(track.getConsumerGroup() + " " + track.getTrackType()));
            return tracks;
        });
        List<MessageExt> all = new ArrayList<>();
        for (MessageQueue queue : puller.fetchSubscribeMessageQueues(topic)) {
            long offset = puller.searchOffset(queue, 0);
            long end = puller.searchOffset(queue, System.currentTimeMillis());
            while (offset <= end && all.size() < MOST) {
                var pulled = puller.pull(queue, "*", offset, 32);
                if (pulled.getMsgFoundList() == null) {
                    break;
                }
                all.addAll(pulled.getMsgFoundList());
                offset = pulled.getNextBeginOffset();
            }
        }
        Map<String, Object> bodies = new TreeMap<>();
        all.forEach(each -> bodies.put(each.getQueueId() + " " + each.getQueueOffset(), shown(each)));
        seen.add("messages by time", topic, bodies);
    }

    private static Object shown(MessageExt message) {
        return List.of(message.getTopic(), message.getQueueId(), message.getQueueOffset(), Rig.body(message),
            String.valueOf(message.getTags()), String.valueOf(message.getKeys()), message.getReconsumeTimes(),
            message.getSysFlag());
    }

    /** What its buttons do: create, reset and delete. */
    private void changes(String master) throws Exception {
        var topic = new org.apache.rocketmq.common.TopicConfig("DashboardTopic", 2, 3, 6);
        admin.createAndUpdateTopicConfig(master, topic);
        seen.ask("created topic", "DashboardTopic", () -> {
            var config = admin.examineTopicConfig(master, "DashboardTopic");
            return List.of(config.getReadQueueNums(), config.getWriteQueueNums(), config.getPerm());
        });
        seen.ask("reset offsets", words[1], () -> {
            Map<String, Long> reset = new TreeMap<>();
            admin.resetOffsetByTimestamp(words[0], words[1], 0, true).forEach((queue, offset) ->
                reset.put(queue.getTopic() + " " + queue.getQueueId(), offset));
            return reset;
        });
        admin.deleteTopicInBroker(Set.of(master), "DashboardTopic");
        seen.ask("deleted topic", "DashboardTopic", () -> admin.examineTopicConfig(master, "DashboardTopic").toString());
    }

    @Override
    public void close() {
        admin.shutdown();
        puller.shutdown();
    }
}
