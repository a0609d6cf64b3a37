import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import kafka.api.FetchRequestBuilder;
import kafka.api.PartitionOffsetRequestInfo;
import kafka.common.TopicAndPartition;
import kafka.javaapi.FetchResponse;
import kafka.javaapi.OffsetRequest;
import kafka.javaapi.OffsetResponse;
import kafka.javaapi.consumer.SimpleConsumer;
import kafka.javaapi.producer.Producer;
import kafka.message.MessageAndOffset;
import kafka.producer.KeyedMessage;
import kafka.producer.ProducerConfig;

/**
 * Kafka 0.8.2: the Java producer, the Scala producer and the SimpleConsumer. Arguments as for Client; the Scala
 * producer is a writer of its own, RELEASE-scala.
 */
public class Client08 {
    private static final String RELEASE = "0.8.2.2";
    private static final int FETCH_SIZE = 50_000;

    private final String broker;
    private final List<String> writers;

    private Client08(String broker, String writers) {
        this.broker = broker;
        this.writers = Arrays.asList(writers.split(","));
    }

    public static void main(String[] args) {
        Client08 c = new Client08(args[1], args[3]);
        if (args[0].equals("produce")) {
            Writer.writeAll(c.broker, RELEASE);
            c.produceAll();
        } else {
            c.consumeAll();
        }
        System.out.flush();
        System.exit(0);
    }

    private void produceAll() {
        for (String topic : Plan.topics()) {
            if (!topic.endsWith("zstd")) {
                Plan.check(RELEASE + "-scala writes " + topic, () -> produce(topic));
            }
        }
    }

    private void produce(String topic) {
        Properties s = new Properties();
        s.put("metadata.broker.list", broker);
        s.put("client.id", "old-" + RELEASE + "-scala");
        s.put("producer.type", "sync");
        s.put("request.required.acks", "1");
        s.put("compression.codec", Plan.codec(topic));
        s.put("serializer.class", "kafka.serializer.StringEncoder");
        Producer<String, String> p = new Producer<String, String>(new ProducerConfig(s));
        List<KeyedMessage<String, String>> set = new ArrayList<KeyedMessage<String, String>>();
        for (int i = 0; i < Plan.COUNT; i++) {
            String value = Plan.value(RELEASE + "-scala", i);
            set.add(Plan.key(i) == null ? new KeyedMessage<String, String>(topic, value) : new KeyedMessage<String, String>(topic, Plan.key(i), value));
            if (set.size() == 50) {
                p.send(set);
                set.clear();
            }
        }
        p.close();
    }

    private void consumeAll() {
        String[] at = broker.split(":");
        SimpleConsumer c = new SimpleConsumer(at[0], Integer.parseInt(at[1]), 20_000, 64 << 10, "old-" + RELEASE);
        for (String topic : Plan.topics()) {
            if (topic.endsWith("zstd")) {
                Plan.check(RELEASE + " gets no record of " + topic, () -> refused(c, topic));
            } else {
                Plan.check(RELEASE + " reads " + topic, () -> consume(c, topic));
            }
        }
        Plan.check(RELEASE + " reads long batches with a small limit", () -> consumeBig(c));
        c.close();
    }

    private long offset(SimpleConsumer c, String topic, long time) throws Exception {
        Map<TopicAndPartition, PartitionOffsetRequestInfo> ask =
            Collections.singletonMap(new TopicAndPartition(topic, 0), new PartitionOffsetRequestInfo(time, 1));
        OffsetResponse r = c.getOffsetsBefore(new OffsetRequest(ask, kafka.api.OffsetRequest.CurrentVersion(), "old-" + RELEASE));
        long[] offsets = r.offsets(topic, 0);
        if (r.hasError() || offsets.length != 1) {
            throw new Exception("offsets at " + time + ": error " + r.errorCode(topic, 0) + ", " + offsets.length + " offsets");
        }
        return offsets[0];
    }

    private FetchResponse fetch(SimpleConsumer c, String topic, long offset) throws Exception {
        return c.fetch(new FetchRequestBuilder().clientId("old-" + RELEASE).maxWait(100).minBytes(1).addFetch(topic, 0, offset, FETCH_SIZE).build());
    }

    interface Each {
        void message(long offset, String key, String value) throws Exception;
    }

    /** read: all of a topic, from its first offset to its end. */
    private void read(SimpleConsumer c, String topic, Each each) throws Exception {
        long next = offset(c, topic, kafka.api.OffsetRequest.EarliestTime());
        long end = offset(c, topic, kafka.api.OffsetRequest.LatestTime());
        while (next < end) {
            FetchResponse r = fetch(c, topic, next);
            if (r.hasError()) {
                throw new Exception("fetch at " + next + ": error " + r.errorCode(topic, 0));
            }
            long before = next;
            for (MessageAndOffset m : r.messageSet(topic, 0)) {
                if (m.offset() >= next) {
                    if (!m.message().isValid()) {
                        throw new Exception("checksum of the message at " + m.offset());
                    }
                    each.message(m.offset(), text(m.message().key()), text(m.message().payload()));
                    next = m.nextOffset();
                }
            }
            if (next == before) {
                throw new Exception("no message at " + next + " of " + end);
            }
        }
    }

    private static String text(ByteBuffer b) throws Exception {
        if (b == null) {
            return null;
        }
        byte[] bytes = new byte[b.remaining()];
        b.get(bytes);
        return new String(bytes, "UTF-8");
    }

    private void consume(SimpleConsumer c, String topic) throws Exception {
        Plan.Expected expected = new Plan.Expected(topic, writers);
        read(c, topic, expected::add);
        expected.verify();
    }

    private void consumeBig(SimpleConsumer c) throws Exception {
        int[] next = {0};
        read(c, Plan.BIG, (offset, key, value) -> Plan.verifyBig(next[0]++, value));
        if (next[0] != Plan.BIG_COUNT) {
            throw new Exception("got " + next[0] + " records, want " + Plan.BIG_COUNT);
        }
    }

    private void refused(SimpleConsumer c, String topic) throws Exception {
        FetchResponse r = fetch(c, topic, 0);
        if (!r.hasError() || r.messageSet(topic, 0).iterator().hasNext()) {
            throw new Exception("got no error");
        }
    }
}
