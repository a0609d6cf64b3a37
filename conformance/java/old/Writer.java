import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** The Java producer, which 0.8.2 has too. */
public class Writer {
    static void writeAll(String broker, String release) {
        for (String topic : Plan.topics()) {
            if (!topic.endsWith("zstd") || Plan.hasZstd(release)) {
                Plan.check(release + " writes " + topic, () -> write(broker, release, topic));
            }
        }
        if (release.startsWith("3.")) {
            Plan.check(release + " writes long batches", () -> writeBig(broker, release));
            Plan.check(release + " idempotent is refused by v1", () -> refused(broker, release));
        }
    }

    private static Properties settings(String broker, String release, String codec) {
        Properties p = new Properties();
        p.put("bootstrap.servers", broker);
        p.put("client.id", "old-" + release);
        p.put("compression.type", codec);
        p.put("acks", "all");
        p.put("linger.ms", "5");
        if (release.startsWith("3.")) {
            p.put("enable.idempotence", "false"); // old formats cannot hold what it needs
        }
        p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        return p;
    }

    private static void write(String broker, String release, String topic) throws Exception {
        KafkaProducer<String, String> p = new KafkaProducer<String, String>(settings(broker, release, Plan.codec(topic)));
        List<Future<?>> sent = new ArrayList<Future<?>>();
        for (int i = 0; i < Plan.COUNT; i++) {
            sent.add(p.send(new ProducerRecord<String, String>(topic, 0, Plan.key(i), Plan.value(release, i))));
        }
        for (Future<?> f : sent) {
            f.get();
        }
        p.close();
    }

    private static void writeBig(String broker, String release) throws Exception {
        Properties s = settings(broker, release, "none");
        s.put("batch.size", "500000");
        s.put("linger.ms", "50");
        KafkaProducer<String, String> p = new KafkaProducer<String, String>(s);
        Future<?> last = null;
        for (int i = 0; i < Plan.BIG_COUNT; i++) {
            last = p.send(new ProducerRecord<String, String>(Plan.BIG, 0, null, Plan.bigValue(i)));
        }
        last.get();
        p.close();
    }

    private static void refused(String broker, String release) throws Exception {
        Properties s = settings(broker, release, "none");
        s.put("enable.idempotence", "true");
        KafkaProducer<String, String> p = new KafkaProducer<String, String>(s);
        try {
            p.send(new ProducerRecord<String, String>("v1-none", 0, "k", "v")).get();
        } catch (Exception e) {
            if (e.getCause() != null && e.getCause().getClass().getSimpleName().equals("UnsupportedForMessageFormatException")) {
                return;
            }
            throw e;
        } finally {
            p.close();
        }
        throw new Exception("was accepted");
    }
}
