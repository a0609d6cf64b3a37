# Java clients of all generations, from 0.8.2, write and read logs of every message format.
# Each reads what all others wrote: the old ones get it converted. Sourced by run.

RELEASES='0.8.2.2 0.9.0.1 0.10.2.2 0.11.0.3 1.1.1 2.8.2 3.9.1'
WRITERS=0.8.2.2-scala,${RELEASES// /,}
OLD_DATA=$WORK/old-data
rm -rf "$OLD_DATA"

# old_client RELEASE: its jars as $WORK/client-RELEASE/*.jar, and our programs, compiled with them.
old_client() {
  local jars=$WORK/client-$1 artifact=kafka-clients sources='Client Plan Writer'
  if [ "$1" = 0.8.2.2 ]; then artifact=kafka_2.11 sources='Client08 Plan Writer'; fi
  if [ ! -f "$jars/.complete" ]; then
    echo "fetching $artifact $1"
    mvn -q -B -f java/old/pom.xml -Dartifact=$artifact -Dclient.version="$1" dependency:copy-dependencies -DoutputDirectory="$jars" -DincludeScope=runtime >>"$LOG" 2>&1 &&
      touch "$jars/.complete" || { echo "Maven did not bring $artifact $1, see $LOG"; return 1; }
  fi
  mkdir -p "$jars/classes"
  if [ -n "$(find java/old -name '*.java' -newer "$jars/classes/.compiled" 2>&1)" ]; then
    (cd java/old && javac -nowarn -Xlint:-options -cp "$jars/*" -d "$jars/classes" $(printf '%s.java ' $sources)) >>"$LOG" 2>&1 &&
      touch "$jars/classes/.compiled" || { echo "our programs do not compile with $1, see $LOG"; return 1; }
  fi
}

run_client() { # produce|consume RELEASE
  local jars=$WORK/client-$2 main=Client
  if [ "$2" = 0.8.2.2 ]; then main=Client08; fi
  counted java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$jars/classes:$jars/*" $main "$1" "$BROKER" "$2" "$WRITERS"
}

old_topics() { # one partition each, so that every writer's order is seen
  local format codec release
  for format in v0:0.9.0 v1:0.10.2 v2:2.8; do
    for codec in none gzip snappy lz4; do
      "$GREGOR" topics create "${format%:*}-$codec" --config message.format.version="${format#*:}" -b "$BROKER" || return 1
    done
  done
  "$GREGOR" topics create v2-zstd -b "$BROKER" && "$GREGOR" topics create big -b "$BROKER"
}

# Clients of today read the old formats as they are. (franz-go, and gregor consume with it, does not
# read v0 with LZ4: it takes the header's checksum seriously.)
own_consumer() { # TOPIC
  local writers=8
  if [ "$1" = v2-zstd ]; then writers=2; fi
  [ "$("$GREGOR" consume "$1" --from beginning --to-end -f '%v\n' -b "$BROKER" | sort -u | wc -l)" -eq $((writers * 200)) ]
}
kcat_consumer() { # TOPIC
  [ "$(timeout 40 kcat -b "$BROKER" -C -e -q -t "$1" -p 0 -o beginning | sort -u | wc -l)" -eq 1600 ]
}

for release in $RELEASES; do
  old_client "$release" || { FAILED=$((FAILED + 1)); return; }
done
start_gregor "$OLD_DATA" || { echo "FAIL gregor does not start, see $LOG"; FAILED=$((FAILED + 1)); return; }
check "topics of every message format" old_topics
for release in $RELEASES; do run_client produce "$release"; done
for release in $RELEASES; do run_client consume "$release"; done
for topic in v0-none v0-gzip v1-snappy v1-lz4 v2-zstd; do check "gregor consume $topic" own_consumer "$topic"; done
for topic in v0-none v0-lz4 v1-gzip; do check "kcat $topic" kcat_consumer "$topic"; done
logged_once() { [ "$(grep -c "old client.*client=old-$1 " "$LOG")" -eq 1 ]; }
for release in 0.8.2.2 0.9.0.1 0.10.2.2; do check "$release is logged once as an old client" logged_once "$release"; done
stop "$GREGOR_PID"

old_dump() { # Kafka's own tool reads the old formats that gregor wrote
  local files
  files=$(ls "$OLD_DATA"/v[01]-*-0/*.log | tr '\n' ',')
  dump_log --deep-iteration --files "${files%,}" >"$WORK/dump" 2>&1 &&
    grep -q 'isvalid: true' "$WORK/dump" && ! grep -qE 'isvalid: false|[Cc]orrupt|Exception|invalid' "$WORK/dump"
}
check "kafka-dump-log of v0 and v1" old_dump
