// Package coordinator runs state machines whose only truth is a partition's log:
// consumer groups over __consumer_offsets, transactions over __transaction_state.
// (Kafka class CoordinatorRuntime.)
//
// # Shards
//
// A shard is one partition of the topic. The broker that leads the partition runs the
// shard; its state is what the partition's records add up to.
//
//	Lead ──> loading ──> active ──> stopped
//	            │          │ Resign, a later epoch, Close, an append of
//	            └──────────┘ unknown outcome (which loads again)
//
// # Steps
//
//	 Submit            step                      append             done
//	event ──> queue ──> (state, event, now) ──> one batch, acks=all ──> state, replies
//	                         │ nothing to write
//	                         └──> replies
//
// A step looks at the Machine and changes what the log does not hold (who waits for what,
// timers). What the log does hold it only asks for, with Turn.Write; the Done function of
// the write runs when the records are committed, changes the state accordingly and
// replies. So the state is never ahead of the log, nothing has to be undone when an
// append fails, and no reply leaves before its records are safe.
//
// Steps that wait in the queue together share a batch: while one append is on its way the
// next steps collect. The records of one write are never split between batches.
//
// # Rules
//
//   - A machine is used by one goroutine at a time. It needs no lock.
//   - Done functions run in the order of the log.
//   - A shard has a goroutine only while it has work. A deadline is a timer of the
//     runtime, not a goroutine, so fifty idle shards cost fifty small structs.
//   - The queue holds one event per waiting request, and a connection has one request at
//     a time: the connection limit bounds it.
package coordinator
