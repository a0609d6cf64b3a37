// Package purgatory holds operations that wait for something to happen to a key: a fetch
// for bytes, a produce for its followers. (Kafka class DelayedOperationPurgatory.)
//
// A key is a List, kept by what can change; an Operation watches any number of Lists and
// belongs to the goroutine that waits in it, which is one that exists anyway: the one of
// the client's connection. So a waiting operation costs no goroutine, and nothing at all
// when nobody waits: Wake then reads one number.
//
//	goroutine of the fetch            goroutine of the append
//	----------------------            -----------------------
//	o.Watch(each partition's List)
//	look; enough? then stop
//	o.Expect(what is missing)
//	o.Wait                    <-----  list.Wake(bytes appended)
//	look again ...
//	o.Stop
//
// # Rules
//
//   - Watch first, look afterwards: what happens in between leaves a signal.
//   - Whoever waits looks for itself whether the wait is over. A signal means only "look".
//   - An operation is completed by its own goroutine, thus once, and Stop removes it from
//     all its Lists, however it ended: an idle key keeps no trace of it.
package purgatory
