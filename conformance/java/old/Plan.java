import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What is written where, and whether what was read is that. */
public class Plan {
    static final int COUNT = 200;
    static final String BIG = "big";
    static final int BIG_COUNT = 3000;

    private static final String[] FORMATS = {"v0", "v1", "v2"};
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};

    /** topics: one per message format and codec; the old formats have no zstd. */
    static List<String> topics() {
        List<String> list = new ArrayList<String>();
        for (String format : FORMATS) {
            for (String codec : CODECS) {
                if (format.equals("v2") || !codec.equals("zstd")) {
                    list.add(format + "-" + codec);
                }
            }
        }
        return list;
    }

    static String codec(String topic) {
        return topic.substring(topic.indexOf('-') + 1);
    }

    /** hasZstd: clients have it from 2.1 on. */
    static boolean hasZstd(String release) {
        return release.startsWith("2.8") || release.startsWith("3.");
    }

    static String key(int i) {
        return i % 10 == 0 ? null : "key-" + i;
    }

    static String value(String release, int i) {
        StringBuilder b = new StringBuilder(release).append(':').append(i).append(':');
        for (int k = 0; k < i % 50; k++) {
            b.append("abc");
        }
        return b.toString();
    }

    static String bigValue(int i) {
        StringBuilder b = new StringBuilder().append(i).append(':');
        while (b.length() < 1000) {
            b.append((char) ('a' + (i + b.length()) % 26));
        }
        return b.toString();
    }

    static void verifyBig(int i, String value) throws Exception {
        if (!bigValue(i).equals(value)) {
            throw new Exception("record " + i + " is " + value.substring(0, 20) + "...");
        }
    }

    interface Action {
        void run() throws Exception;
    }

    static void check(String name, Action a) {
        try {
            a.run();
            System.out.println("ok   " + name);
        } catch (Throwable e) {
            System.out.println("FAIL " + name + ": " + e);
            e.printStackTrace();
        }
    }

    /** Expected checks the records of a topic: each writer's in order, and offsets that only grow. */
    static class Expected {
        private final Map<String, Integer> next = new HashMap<String, Integer>();
        private long lastOffset = -1;
        private int count;
        private String wrong;

        Expected(String topic, List<String> writers) {
            for (String w : writers) {
                if (!codec(topic).equals("zstd") || hasZstd(w)) {
                    next.put(w, 0);
                }
            }
        }

        int count() {
            return count;
        }

        boolean complete() {
            return count == next.size() * COUNT || wrong != null;
        }

        void add(long offset, String key, String value) {
            String writer = value.substring(0, value.indexOf(':'));
            Integer i = next.get(writer);
            if (i == null || !value.equals(value(writer, i)) || offset <= lastOffset) {
                fail("offset " + offset + " after " + lastOffset + ": " + value + ", want " + i);
                return;
            }
            if (key == null ? key(i) != null : !key.equals(key(i))) {
                fail("offset " + offset + " has key " + key);
            }
            next.put(writer, i + 1);
            lastOffset = offset;
            count++;
        }

        private void fail(String reason) {
            if (wrong == null) {
                wrong = reason;
            }
        }

        void verify() throws Exception {
            if (wrong != null) {
                throw new Exception(wrong);
            }
            if (!complete()) {
                throw new Exception("got " + count + " records: " + next);
            }
        }
    }
}
