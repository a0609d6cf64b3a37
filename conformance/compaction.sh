# The same keyed history compacted by a real Kafka and by gregor. Sourced by run.

COMPACTED=$WORK/compaction-data
HISTORY=$WORK/history
rm -rf "$COMPACTED" "$HISTORY"
mkdir -p "$HISTORY"
EAGER='log.cleaner.backoff.ms=200 log.cleaner.dedupe.buffer.size=16777216'
TOPICS='kept-none kept-gzip kept-snappy kept-lz4 kept-zstd gone-none gone-zstd'

# histories: two rounds of records over 500 and 250 keys, a tombstone now and then, as `gregor produce --json`
# takes them. The last record of a round is so much later than the others that it rolls the segment.
histories() {
  python3 - "$HISTORY" <<'PY'
import base64, json, random, sys, time
start = int(time.time() * 1000) - 30 * 60 * 1000
rng = random.Random(280)
b64 = lambda s: base64.b64encode(s.encode()).decode()
for round in 1, 2:
    begin = start + (round - 1) * 20 * 60 * 1000
    with open(f"{sys.argv[1]}/round{round}", "w") as out:
        for i in range(6000):
            tombstone = rng.random() < 0.05
            value = None if tombstone else b64(f"{round}-{i}-" + "%x" % rng.getrandbits(1200))
            record = {"timestamp": begin + i, "key": b64(f"k{int(rng.paretovariate(0.4)) % (750 - 250 * round)}"), "value": value}
            if i % 10 == 0:
                record["headers"] = [["round", b64(str(round))]]
            out.write(json.dumps(record) + "\n")
    with open(f"{sys.argv[1]}/last{round}", "w") as out:
        out.write(json.dumps({"timestamp": begin + 15 * 60 * 1000, "key": b64("last"), "value": b64(str(round))}) + "\n")
PY
}

# Nothing is cleaned before a round is complete, so that both clean once a round.
create_topics() { # BROKER
  local t horizon
  for t in $TOPICS; do
    horizon=86400000
    if [ "${t%%-*}" = gone ]; then horizon=0; fi
    "$GREGOR" topics create "$t" --partitions 1 -b "$1" --config cleanup.policy=compact --config segment.bytes=1048576 \
      --config segment.ms=600000 --config delete.retention.ms=$horizon --config min.cleanable.dirty.ratio=1 || return 1
  done
}
produce_round() { # ROUND BROKER
  local t
  for t in $TOPICS; do
    "$GREGOR" produce "$t" --json -z "${t#*-}" -b "$2" <"$HISTORY/round$1" && "$GREGOR" produce "$t" --json -b "$2" <"$HISTORY/last$1" || return 1
  done
}
set_ratio() { # RATIO BROKER
  local t
  for t in $TOPICS; do "$GREGOR" topics alter "$t" --config min.cleanable.dirty.ratio="$1" -b "$2" || return 1; done
}
cleaned_to() { # OFFSET DATA
  local t
  for t in $TOPICS; do grep -qx "$t 0 $1" "$2/cleaner-offset-checkpoint" || return 1; done
}
clean_round() { # ROUND BROKER DATA: each round has 6001 records, the last of which is in the active segment
  produce_round "$1" "$2" && set_ratio 0 "$2" && await 60 cleaned_to $(($1 * 6001 - 1)) "$3" && set_ratio 1 "$2"
}

# survivors DATA NAME: what Kafka's tool finds in the files of each topic, as $WORK/NAME-TOPIC, without
# what depends on how the producer made batches
survivors() {
  local t files=
  for t in $TOPICS; do files+=$(ls "$1/$t-0"/*.log | tr '\n' ','); done
  dump_log --print-data-log --files "${files%,}" >"$WORK/dump" 2>&1 || return 1
  ! grep -qE 'isvalid: false|[Cc]orrupt|Exception' "$WORK/dump" || return 1
  for t in $TOPICS; do
    awk -v dir="/$t-0/" '/^Dumping /{ mine = index($2, dir) } mine && sub(/^\| /, "") { sub(/ sequence: -?[0-9]+/, ""); print }' "$WORK/dump" >"$WORK/$2-$t"
  done
}
both_survivors() { survivors "$REAL_DIR/data" kafka && survivors "$COMPACTED" gregor; }
same_survivors() { # TOPIC
  local count
  count=$(wc -l <"$WORK/kafka-$1")
  [ "$count" -gt 100 ] && [ "$count" -lt 1000 ] && cmp "$WORK/kafka-$1" "$WORK/gregor-$1"
}
tombstones() { # TOPIC MAX-OFFSET: of records up to an offset, by gregor
  awk -v max="$2" '$2 <= max && / valueSize: -1 /' "$WORK/gregor-$1" | wc -l
}
horizons() { # tombstones of the first round have gone where delete.retention.ms is 0, and those of the second stay
  [ "$(tombstones gone-none 6000)" -eq 0 ] && [ "$(tombstones gone-none 99999)" -gt 0 ] && [ "$(tombstones kept-none 6000)" -gt 0 ]
}
indexes() {
  local t files=
  for t in $TOPICS; do files+=$(ls "$COMPACTED/$t-0"/*index | tr '\n' ','); done
  dump_log --index-sanity-check --files "${files%,}" >"$WORK/dump" 2>&1 && ! grep -qE '[Cc]orrupt|Exception|[Mm]ismatch' "$WORK/dump"
}
everything_of() { timeout 60 kcat -b "$1" -C -e -q -t "$2" -p 0 -o beginning -X check.crcs=true -X fetch.wait.max.ms=10 -f '%o %T %k %K %s %S %h\n'; }

# A consumer reads from the beginning, again and again, while the topic is written and cleaned. What it
# finds wrong it says; the log then has what it read.
reading() {
  local keys
  while [ ! -f "$WORK/stop-reading" ]; do
    everything_of "$BROKER" busy >"$WORK/busy" || { echo "kcat ended with $?"; return 1; }
    cut -d' ' -f1 "$WORK/busy" | sort -c -n -u || { echo "offsets do not ascend"; cat "$WORK/busy"; return 1; }
    keys=$(cut -d' ' -f3 "$WORK/busy" | sort -u | wc -l)
    [ "$keys" -eq 200 ] || { echo "$keys keys were read, not 200"; cat "$WORK/busy"; return 1; }
    echo >>"$WORK/readings"
  done
}
busy_round() { seq 1 200 | sed "s/.*/key&:$1-value-of-some-length-&/" | "$GREGOR" produce busy -K : -b "$BROKER"; }
busy_cleaning() { busy_round "$1" && "$GREGOR" topics clean busy --roll --data "$COMPACTED"; }
# read_during_cleanings: 50 of them, and more until the consumer, which takes half a second to begin, has
# read three times.
read_during_cleanings() {
  local round=0 reader rc=0 left
  rm -f "$WORK/stop-reading" && : >"$WORK/readings"
  "$GREGOR" topics create busy -b "$BROKER" --config cleanup.policy=compact --config min.cleanable.dirty.ratio=1 && busy_round 0 || return 1
  reading &
  reader=$!
  while [ $rc -eq 0 ] && [ $round -lt 2000 ] && { [ $round -lt 50 ] || [ "$(wc -l <"$WORK/readings")" -lt 3 ]; } && kill -0 $reader; do
    round=$((round + 1))
    busy_cleaning $round || rc=1
  done
  touch "$WORK/stop-reading"
  wait $reader || rc=1
  left=$(everything_of "$BROKER" busy | wc -l)
  echo "$round cleanings, $(wc -l <"$WORK/readings") readings, $left records left"
  [ $rc -eq 0 ] && [ "$(wc -l <"$WORK/readings")" -ge 3 ] && [ "$left" -eq 200 ]
}

# gregor goes on where Kafka stopped: cleans everything again, and a consumer sees the same.
goes_on() {
  local t
  for t in kept-none kept-lz4 gone-zstd; do everything_of "127.0.0.1:$REAL_PORT" "$t" >"$WORK/before-$t" || return 1; done
  real_kafka down
  stop "$GREGOR_PID"
  start_gregor "$REAL_DIR/data" --set log.cleaner.enable=false || return 1
  for t in kept-none kept-lz4; do
    "$GREGOR" topics clean "$t" --data "$REAL_DIR/data" && everything_of "$BROKER" "$t" | cmp "$WORK/before-$t" - || return 1
  done
  "$GREGOR" topics clean gone-zstd --data "$REAL_DIR/data" && everything_of "$BROKER" gone-zstd >"$WORK/after" || return 1
  awk '$5 != -1' "$WORK/before-gone-zstd" | cmp - "$WORK/after" # tombstones have had their time
}

compact_settings=()
for s in $EAGER; do compact_settings+=(--set "$s"); done
check "histories" histories
start_gregor "$COMPACTED" "${compact_settings[@]}" || { echo "FAIL gregor does not start, see $LOG"; FAILED=$((FAILED + 1)); return; }
both_up() { new_real_kafka "$WORK/compaction-kafka" $EAGER && real_kafka up && create_topics "127.0.0.1:$REAL_PORT" && create_topics "$BROKER"; }
check "a real Kafka and gregor" both_up
for round in 1 2; do
  check "Kafka cleans, round $round" clean_round $round "127.0.0.1:$REAL_PORT" "$REAL_DIR/data"
  check "gregor cleans, round $round" clean_round $round "$BROKER" "$COMPACTED"
  check "kafka-dump-log of both, round $round" both_survivors
  for topic in $TOPICS; do check "the same survivors, round $round: $topic" same_survivors "$topic"; done
done
check "tombstones by their horizon" horizons
check "index sanity check" indexes
seen_the_same() { everything_of "127.0.0.1:$REAL_PORT" "$1" >"$WORK/seen" && everything_of "$BROKER" "$1" | cmp "$WORK/seen" -; }
for topic in $TOPICS; do check "consumers see the same: $topic" seen_the_same "$topic"; done
check "a consumer during 50 cleanings" read_during_cleanings
check "gregor goes on in Kafka's directory" goes_on
stop "$GREGOR_PID"
check "gregor check of the directory" "$GREGOR" check --quiet "$COMPACTED"
