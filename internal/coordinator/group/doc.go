// Package group is the group coordinator: the classic protocol by which consumers share
// partitions, and the offsets that groups commit. (Kafka classes GroupMetadataManager,
// ClassicGroup, OffsetMetadataManager.)
//
// # States of a group
//
//		          first member                     leader syncs
//		          ┌────────> PreparingRebalance ──────────────> CompletingRebalance ──> Stable
//		          │             │    ^   ^    all members joined       │                  │
//		        Empty <─────────┘    │   │    or time is up            │                  │
//		          │   nobody is left │   └─────────────────────────────┴──────────────────┘
//		          └──> gone          │              a member joins, leaves, expires or changes
//		                             └── only static members, none of them rejoined
//
//	  - PreparingRebalance: JoinGroup requests wait until every known member has sent one,
//	    or the longest rebalance timeout has passed. From Empty it is instead the initial
//	    delay (group.initial.rebalance.delay.ms) that ends the wait.
//	  - CompletingRebalance: all have the new generation, SyncGroup requests wait for the
//	    leader's assignment. The phase has the rebalance timeout as its limit, too.
//	  - Stable: the assignment is in the log.
//
// Each completed join phase makes a generation, also one without members.
//
// # What is in the log
//
// One record per group: key type 2, value version 3. It is written when a group is
// created, when the leader has synced, when a static member returns under a new id, and
// when the last member is gone; not in between. So a group is loaded as Stable with the
// members of its last complete rebalance, or as Empty. Members that the log knows get a
// fresh session when the group is loaded.
//
// One record per committed offset: key type 1, value version 4, or 1 when the client set
// an expiry of its own (requests of version 2 to 4).
//
//	key    type i16, group str [, topic str, partition i32]
//	value  version i16, fields; null deletes
//
// Offsets inside a transaction are pending until the producer's marker: commit makes
// them current, unless a later one has been committed outside, abort drops them.
//
// Records of other types belong to groups of the newer protocols (KIP-848, share,
// streams). Of these the keys are remembered, so that the group can be listed, and
// deleted or taken over by classic members with a tombstone for each.
//
// # Membership
//
//   - A dynamic member gets its id from the coordinator: client id, dash, UUID. From
//     JoinGroup version 4 on it has to come back with the id before it counts.
//   - A static member is known by its instance id. When it returns without its member id
//     it gets a new one and takes over the assignment; the old id is fenced.
//   - A session lasts until its timeout without Heartbeat, JoinGroup, SyncGroup or
//     OffsetCommit. A member whose request waits does not expire; a member that waits for
//     its very first generation does after five minutes.
package group
