# The main job with other people's programs. Sourced by run.

DATA=$WORK/smoke-data
rm -rf "$DATA"
CODECS='none gzip snappy lz4 zstd'
seq 1 1000 >"$WORK/n1000"
seq 1 500 | sed 's/.*/k&:v&/' >"$WORK/keyed500"

kcat_roundtrip() { # CODEC IDEMPOTENT
  local topic=kcat-$1-$2
  timeout 40 kcat -b "$BROKER" -P -t "$topic" -p 0 -z "$1" -X enable.idempotence="$2" <"$WORK/n1000" &&
    timeout 40 kcat -b "$BROKER" -C -e -q -t "$topic" -p 0 -o beginning -X check.crcs=true >"$WORK/got" &&
    cmp "$WORK/n1000" "$WORK/got"
}

java_roundtrip() { # CODEC IDEMPOTENT
  local topic=java-$1-$2
  timeout 60 "$GREGOR" topics create "$topic" -b "$BROKER" --if-not-exists &&
    console_producer --topic "$topic" --compression-codec "$1" --command-property enable.idempotence="$2" \
      --reader-property parse.key=true --reader-property key.separator=: <"$WORK/keyed500" &&
    console_consumer --topic "$topic" --from-beginning --max-messages 500 --timeout-ms 20000 \
      --formatter-property print.key=true --formatter-property key.separator=: >"$WORK/got" &&
    sort "$WORK/got" | cmp - <(sort "$WORK/keyed500")
}

java_group() { # committed offsets last: the second run of a group starts where the first stopped
  console_consumer --topic java-none-true --group smoke-group --from-beginning --max-messages 200 --timeout-ms 20000 >"$WORK/got1" &&
    console_consumer --topic java-none-true --group smoke-group --from-beginning --max-messages 300 --timeout-ms 20000 >"$WORK/got2" &&
    sort "$WORK/got1" "$WORK/got2" | cmp - <(sed 's/.*://' "$WORK/keyed500" | sort)
}

own_commands() {
  local t=own
  "$GREGOR" topics create $t --partitions 2 --config retention.ms=86400000 -b "$BROKER" &&
    "$GREGOR" topics list -b "$BROKER" | grep -qx $t &&
    "$GREGOR" topics describe $t -b "$BROKER" | grep -q 'retention.ms=86400000' &&
    "$GREGOR" topics alter $t --partitions 3 --config segment.bytes=2000000 -b "$BROKER" &&
    "$GREGOR" produce $t -K : -H source=smoke -z zstd -b "$BROKER" <"$WORK/keyed500" &&
    "$GREGOR" consume $t --from beginning --to-end -f '%k:%v\n' -b "$BROKER" | sort | cmp - <(sort "$WORK/keyed500") &&
    "$GREGOR" consume $t --from beginning --to-end -f '%h\n' -b "$BROKER" | sort -u | cmp - <(echo source=smoke) &&
    "$GREGOR" consume $t --from beginning --to-end --json -b "$BROKER" | "$GREGOR" produce $t-copy --json -b "$BROKER" &&
    "$GREGOR" consume $t-copy --from beginning --to-end -f '%k:%v %h\n' -b "$BROKER" | sort | cmp - <(sed 's/$/ source=smoke/' "$WORK/keyed500" | sort) &&
    "$GREGOR" topics delete $t $t-copy -b "$BROKER" &&
    ! "$GREGOR" topics describe $t -b "$BROKER"
}

# everything TOPIC: all that a consumer can see of partition 0.
everything() {
  timeout 60 kcat -b "$BROKER" -C -e -q -t "$1" -p 0 -o beginning -f '%o %T %k %K %s %S %h\n'
}

start_gregor "$DATA" || { echo "FAIL gregor does not start, see $LOG"; FAILED=$((FAILED + 1)); return; }
for codec in $CODECS; do
  for idempotent in true false; do
    check "kcat $codec idempotent=$idempotent" kcat_roundtrip "$codec" "$idempotent"
  done
done
counted "$WORK/clients" -broker "$BROKER"
for codec in $CODECS; do
  for idempotent in true false; do
    check "java console $codec idempotent=$idempotent" java_roundtrip "$codec" "$idempotent"
  done
done
check "java console group resumes" java_group
check "gregor topics, produce, consume" own_commands

# kill -9, start again, find everything
for t in kcat-zstd-true java-lz4-false franz-go-gzip-true; do everything "$t" >"$WORK/before-$t"; done
stop "$GREGOR_PID" -KILL
start_gregor "$DATA" || { echo "FAIL gregor does not start after kill -9"; FAILED=$((FAILED + 1)); return; }
for t in kcat-zstd-true java-lz4-false franz-go-gzip-true; do
  same() { [ -s "$WORK/before-$t" ] && everything "$t" | cmp "$WORK/before-$t" -; }
  check "after kill -9: $t" same
done
group_kept() { ! console_consumer --topic java-none-true --group smoke-group --max-messages 1 --timeout-ms 3000 | grep .; }
check "after kill -9: committed offsets" group_kept
stop "$GREGOR_PID"

check "gregor check of the directory" "$GREGOR" check --quiet "$DATA"

# Kafka's own tools read the files
dump() { # TOPIC: one run of the tool over all segments
  local files
  files=$(ls "$DATA/$1-0"/*.log | tr '\n' ',')
  dump_log --deep-iteration --print-data-log --files "${files%,}" >"$WORK/dump" 2>&1 &&
    grep -q 'isvalid: true' "$WORK/dump" && ! grep -qE 'isvalid: false|[Cc]orrupt|Exception|invalid' "$WORK/dump"
}
indexes() { # TOPIC
  local files
  files=$(ls "$DATA/$1-0"/*index | tr '\n' ',')
  dump_log --index-sanity-check --files "${files%,}" >"$WORK/dump" 2>&1 &&
    ! grep -qE '[Cc]orrupt|Exception|[Mm]ismatch' "$WORK/dump"
}
for t in kcat-none-true kcat-gzip-false java-snappy-true java-lz4-true sarama-zstd-false franz-go-rolled; do
  check "kafka-dump-log $t" dump "$t"
  check "index sanity check $t" indexes "$t"
done
metadata_log() {
  dump_log --cluster-metadata-decoder --files "$(ls "$DATA"/__cluster_metadata-0/*.log | head -n 1)" >"$WORK/dump" 2>&1 &&
    grep -q TOPIC_RECORD "$WORK/dump" && ! grep -qE 'isvalid: false|[Cc]orrupt|Exception' "$WORK/dump"
}
check "kafka-dump-log of the metadata log" metadata_log
offsets_log() {
  local files
  files=$(find "$DATA" -path '*__consumer_offsets-*' -name '*.log' -size +0 | tr '\n' ',')
  dump_log --offsets-decoder --files "${files%,}" >"$WORK/dump" 2>&1 &&
    grep -q smoke-group "$WORK/dump" && ! grep -qE 'isvalid: false|[Cc]orrupt|Exception' "$WORK/dump"
}
check "kafka-dump-log of __consumer_offsets" offsets_log

# a real Kafka serves a partition folder that gregor wrote
serves_the_same() {
  local t
  new_real_kafka "$WORK/real-kafka" || return 1
  real_kafka up && "$GREGOR" topics create $MOVED --partitions 1 -b "127.0.0.1:$REAL_PORT" && real_kafka down || return 1
  for t in $MOVED; do
    find "$DATA/$t-0" -type f ! -name partition.metadata -exec cp {} "$WORK/real-kafka/data/$t-0/" \; || return 1
  done
  real_kafka up || return 1
  BROKER=127.0.0.1:$REAL_PORT
  for t in $MOVED; do everything "$t" >"$WORK/after-$t" && cmp "$WORK/before-$t" "$WORK/after-$t" || return 1; done
  real_kafka down
}
MOVED='kcat-zstd-true java-lz4-false franz-go-gzip-true'
check "a real Kafka serves gregor's partitions" serves_the_same
