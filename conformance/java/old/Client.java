import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/**
 * One release of kafka-clients, from 0.9 on, against gregor. It is compiled against each release, so it uses
 * what all of them have.
 *
 *   Client produce BROKER RELEASE WRITERS   writes Plan.COUNT records to each topic
 *   Client consume BROKER RELEASE WRITERS   reads what all writers wrote, and a group twice
 *
 * It prints "ok NAME" and "FAIL NAME: REASON" lines.
 */
public class Client {
    private static final long PATIENCE_MS = 20_000;

    private final String broker;
    private final String release;
    private final List<String> writers;

    private Client(String broker, String release, String writers) {
        this.broker = broker;
        this.release = release;
        this.writers = Arrays.asList(writers.split(","));
    }

    public static void main(String[] args) {
        Client c = new Client(args[1], args[2], args[3]);
        if (args[0].equals("produce")) {
            Writer.writeAll(c.broker, c.release);
        } else {
            c.consumeAll();
        }
        System.out.flush();
        System.exit(0); // old clients leave threads behind
    }

    private void consumeAll() {
        for (String topic : Plan.topics()) {
            if (topic.endsWith("zstd") && !Plan.hasZstd(release)) {
                Plan.check(release + " gets no record of " + topic, () -> refused(topic));
            } else {
                Plan.check(release + " reads " + topic, () -> consume(topic));
            }
        }
        Plan.check(release + " reads long batches with a small limit", this::consumeBig);
        Plan.check(release + " group resumes", this::group);
    }

    private KafkaConsumer<String, String> consumer(String group, int partitionMaxBytes) {
        Properties p = new Properties();
        p.put("bootstrap.servers", broker);
        p.put("client.id", "old-" + release);
        p.put("group.id", group);
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        p.put("max.partition.fetch.bytes", String.valueOf(partitionMaxBytes));
        p.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        p.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        return new KafkaConsumer<String, String>(p);
    }

    @SuppressWarnings("deprecation")
    private void consume(String topic) throws Exception {
        Plan.Expected expected = new Plan.Expected(topic, writers);
        KafkaConsumer<String, String> c = consumer("reader-" + release + "-" + topic, 1 << 20);
        try {
            c.assign(Arrays.asList(new TopicPartition(topic, 0)));
            long end = System.currentTimeMillis() + PATIENCE_MS;
            while (!expected.complete() && System.currentTimeMillis() < end) {
                for (ConsumerRecord<String, String> r : c.poll(200)) {
                    expected.add(r.offset(), r.key(), r.value());
                }
            }
        } finally {
            c.close();
        }
        expected.verify();
    }

    /** refused: zstd came after this client, so it must get an error or nothing, and no garbage. */
    @SuppressWarnings("deprecation")
    private void refused(String topic) throws Exception {
        KafkaConsumer<String, String> c = consumer("reader-" + release + "-" + topic, 1 << 20);
        int got = 0;
        try {
            c.assign(Arrays.asList(new TopicPartition(topic, 0)));
            long end = System.currentTimeMillis() + 1000;
            while (System.currentTimeMillis() < end) {
                got += c.poll(100).count();
            }
        } catch (RuntimeException e) {
            System.err.println(topic + ": " + e); // what the client makes of an error it does not know
        } finally {
            c.close();
        }
        if (got > 0) {
            throw new Exception("got " + got + " records");
        }
    }

    @SuppressWarnings("deprecation")
    private void consumeBig() throws Exception {
        KafkaConsumer<String, String> c = consumer("reader-" + release + "-big", 50_000);
        int next = 0;
        try {
            c.assign(Arrays.asList(new TopicPartition(Plan.BIG, 0)));
            long end = System.currentTimeMillis() + PATIENCE_MS;
            while (next < Plan.BIG_COUNT && System.currentTimeMillis() < end) {
                for (ConsumerRecord<String, String> r : c.poll(200)) {
                    Plan.verifyBig(next++, r.value());
                }
            }
        } finally {
            c.close();
        }
        if (next != Plan.BIG_COUNT) {
            throw new Exception("got " + next + " records, want " + Plan.BIG_COUNT);
        }
    }

    /** group: the second member starts behind what the first committed. */
    @SuppressWarnings("deprecation")
    private void group() throws Exception {
        String topic = "v2-none";
        Plan.Expected expected = new Plan.Expected(topic, writers);
        for (int member = 0; member < 2; member++) {
            KafkaConsumer<String, String> c = consumer("group-" + release, 10_000);
            try {
                c.subscribe(Arrays.asList(topic));
                int before = expected.count();
                long end = System.currentTimeMillis() + PATIENCE_MS;
                while (System.currentTimeMillis() < end && (member == 0 ? expected.count() == before : !expected.complete())) {
                    for (ConsumerRecord<String, String> r : c.poll(200)) {
                        expected.add(r.offset(), r.key(), r.value());
                    }
                }
                c.commitSync();
            } finally {
                c.close();
            }
        }
        expected.verify();
    }
}
