// Package ownership decides whose log directories are, before a start has written its first byte,
// from all that they and the configuration say. It is pure: evidence in, a verdict out.
//
// # What counts
//
//	meta.properties                      version, cluster, node: package logdir has compared them
//	process.roles, controller.quorum.*   what the configuration says of the quorum
//	KRAFT_VOTERS, LeaderChange           what the metadata log and its newest snapshot say of it
//	quorum-state                         the same, where the log has nothing of its epoch
//	snapshots, producer snapshots,
//	leader-epoch-checkpoint              beside the metadata log: how far it once reached
//	partition.metadata                   which topic a partition is of
//	checkpoints                          that there were partitions
//
// # Rules
//
//   - A broker decides alone only where nobody else has decided: one other voter, or another leader,
//     and the start is refused. It votes beside others where all that has decided names the same
//     voters as the configuration; then the partitions are judged when it has what they committed.
//   - Only what holds after every crash proves that something is missing. A torn tail above all
//     proofs is what a crash leaves.
//   - The image's silence proves nothing. A partition is put aside when the metadata says why: its
//     topic was removed, it has no replica here any more, its id is another topic's. A partition
//     of which the metadata knows nothing stays where it is.
//   - An id is healed when the file is damaged, or nearly right, or a copy of another topic's, and
//     nothing else claims to be the partition.
//   - What a refusal stands in the way of, one permission lets through (Permissions).
package ownership
