# Shared by the suites in this folder; sourced by run.

KAFKA=${KAFKA:-4.4.0}
WORK=${WORK:-$PWD/.work}
PASSED=0 FAILED=0
PIDS=()

# prepare: the scratch folder, the binary, the clients.
prepare() {
  mkdir -p "$WORK"
  WORK=$(cd "$WORK" && pwd)
  LOG=$WORK/log.txt
  : >"$LOG"
  trap stop_all EXIT
  if [ -z "${GREGOR:-}" ]; then
    GREGOR=$WORK/gregor
    (cd .. && CGO_ENABLED=0 go build -o "$GREGOR" ./cmd/gregor) || exit 1
  fi
  go build -o "$WORK/clients" ./clients || exit 1
  command -v kcat >/dev/null || install_kcat || exit 1
  java_tools || exit 1
}

install_kcat() {
  echo "installing kcat"
  { apt-get update -qq && apt-get install -y -qq kcat; } >>"$LOG" 2>&1 || { echo "kcat cannot be installed, see $LOG"; return 1; }
}

# java_tools: Kafka and its tools as $WORK/java-VERSION/*.jar, from Maven Central.
java_tools() {
  JARS=$WORK/java-$KAFKA
  [ -f "$JARS/.complete" ] && return
  echo "fetching Kafka $KAFKA's jars"
  mvn -q -B -f java/pom.xml -Dkafka.version="$KAFKA" dependency:copy-dependencies -DoutputDirectory="$JARS" -DincludeScope=runtime >>"$LOG" 2>&1 ||
    { echo "Maven did not bring Kafka $KAFKA, see $LOG"; return 1; }
  touch "$JARS/.complete"
}

# kafka CLASS ARGS...: a main class of Kafka's, plain java -cp.
kafka() {
  java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile="$PWD/java/log4j2.xml" -cp "$JARS/*" "$@"
}
console_producer() { kafka org.apache.kafka.tools.ConsoleProducer --bootstrap-server "$BROKER" "$@"; }
console_consumer() { kafka org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$BROKER" "$@"; }
dump_log() { kafka org.apache.kafka.tools.DumpLogSegments "$@"; }

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# await SECONDS CMD...: until CMD succeeds.
await() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "gave up waiting for: $*"; return 1; }
    sleep 0.1
  done
}

# start_gregor DATA [FLAGS...]: sets BROKER and GREGOR_PID. Some checks write records of long ago,
# which retention would delete half a minute after the start.
start_gregor() {
  local data=$1 port
  shift
  port=$(free_port)
  "$GREGOR" serve --data "$data" --listen "127.0.0.1:$port" --set group.initial.rebalance.delay.ms=0 --set log.retention.ms=-1 "$@" >>"$LOG" 2>&1 &
  GREGOR_PID=$!
  PIDS+=("$GREGOR_PID")
  BROKER=127.0.0.1:$port
  await 20 "$GREGOR" topics list -b "$BROKER"
}

# new_real_kafka DIR [KEY=VALUE...]: a real Kafka that was never started, with its data in
# DIR/data. real_kafka up|down starts and stops it; clients reach it on REAL_PORT.
new_real_kafka() {
  REAL_DIR=$1
  shift
  REAL_PORT=$(free_port) REAL_CONTROLLER=$(free_port)
  rm -rf "$REAL_DIR" && mkdir -p "$REAL_DIR" || return 1
  sed "s|PORT|$REAL_PORT|g; s|CONTROLLER_AT|$REAL_CONTROLLER|g; s|DIR|$REAL_DIR/data|g" java/server.properties >"$REAL_DIR/server.properties"
  printf '%s\n' "$@" >>"$REAL_DIR/server.properties"
  kafka kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qk -c "$REAL_DIR/server.properties" >>"$LOG" 2>&1 ||
    kafka org.apache.kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qk -c "$REAL_DIR/server.properties" >>"$LOG" 2>&1
}
real_kafka() { # up | down
  if [ "$1" = down ]; then stop "$KAFKA_PID"; return; fi
  java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile="$PWD/java/log4j2.xml" -cp "$JARS/*" \
    kafka.Kafka "$REAL_DIR/server.properties" >>"$LOG" 2>&1 &
  KAFKA_PID=$!
  PIDS+=("$KAFKA_PID")
  await 150 "$GREGOR" topics list -b "127.0.0.1:$REAL_PORT"
}

stop() { # stop PID [SIGNAL]: how the process ended does not matter
  kill "${2:--TERM}" "$1" 2>/dev/null
  wait "$1" 2>/dev/null
  return 0
}

stop_all() {
  local p
  for p in "${PIDS[@]}"; do stop "$p" -KILL; done
}

# check NAME CMD...: one line of the result; what CMD prints goes to the log.
check() {
  local name=$1 rc
  shift
  echo "== $name" >>"$LOG"
  "$@" >>"$LOG" 2>&1 </dev/null
  rc=$?
  if [ $rc -eq 0 ]; then
    PASSED=$((PASSED + 1))
    echo "ok   $name"
  else
    FAILED=$((FAILED + 1))
    echo "FAIL $name (exit $rc, see $LOG)"
  fi
}

# counted CMD...: a program of ours that prints "ok NAME" and "FAIL NAME" lines itself.
counted() {
  local out=$WORK/counted.txt
  timeout 300 "$@" 2>>"$LOG" | tee "$out"
  local rc=${PIPESTATUS[0]}
  PASSED=$((PASSED + $(grep -c '^ok ' "$out")))
  local bad
  bad=$(grep -c '^FAIL ' "$out")
  if [ "$rc" -ne 0 ] && [ "$bad" -eq 0 ]; then
    echo "FAIL $1 ended with $rc"
    bad=1
  fi
  FAILED=$((FAILED + bad))
}

summary() {
  [ "$FAILED" -eq 0 ] || tail -n 60 "$LOG"
  echo "$PASSED passed, $FAILED failed"
  [ "$FAILED" -eq 0 ]
}
