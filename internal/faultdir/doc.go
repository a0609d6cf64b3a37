// Package faultdir makes faults in log directories and judges what becomes of them: for each, a
// broker is started on the faulty copy, in memory, and what its clients read is compared with what
// they read without the fault. Only tests run it.
//
// # Faults
//
// A Tree is what lies in log directories; a Fault changes one file of it: one bit, a cut, zeros, the
// file missing, empty, twice in itself, once more beside itself, exchanged with another of its kind,
// or as it was before. A Machine chooses faults from a seed; Fault.String and ParseFault name one.
//
// # Rules
//
// A Scope says what a fault may cost: the batches whose bytes are not what they were, and what the
// touched file alone knew. Everything else has to be as it was. What a judge objects to:
//
//   - a record that is not what was written, or one that is at a place where none was
//   - an aborted record, or one of an open transaction, given to a reader of committed records
//   - a log end below the old one, a new record at an old offset
//   - a record lost outside the Scope, a partition that cannot be read or written
//   - a start, a reading or a stop that hangs; a start that is refused, except for what says whose
//     the directory is, and then the error has to name it
//   - another answer of ListOffsets, OffsetForLeaderEpoch, OffsetFetch
//   - anything that a reader notices and check has no word for
//   - another reading after the next start, be it after a clean stop or a kill
//
// Of several faults at once only wrong records, hangs and failures count.
package faultdir
