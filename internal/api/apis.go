package api

import "github.com/twmb/franz-go/pkg/kmsg"

// table lists what is served, by API key. OffsetCommit and OffsetFetch 0, which Kafka gave up
// with ZooKeeper, use the same store as later versions.
func (s *Server) table() []api {
	return []api{
		{key: int16(kmsg.Produce), min: 0, max: 13, handle: s.produce},
		{key: int16(kmsg.Fetch), min: 0, max: 18, handle: s.fetch},
		{key: int16(kmsg.ListOffsets), min: 0, max: 11, handle: handle(s, s.listOffsets)},
		{key: int16(kmsg.Metadata), min: 0, max: 13, handle: handle(s, s.metadata)},
		{key: int16(kmsg.OffsetCommit), min: 0, max: 10, handle: handle(s, s.offsetCommit)},
		{key: int16(kmsg.OffsetFetch), min: 0, max: 10, handle: handle(s, s.offsetFetch)},
		{key: int16(kmsg.FindCoordinator), min: 0, max: 6, handle: handle(s, s.findCoordinator)},
		{key: int16(kmsg.JoinGroup), min: 0, max: 9, handle: handle(s, s.joinGroup)},
		{key: int16(kmsg.Heartbeat), min: 0, max: 4, handle: handle(s, s.heartbeat)},
		{key: int16(kmsg.LeaveGroup), min: 0, max: 5, handle: handle(s, s.leaveGroup)},
		{key: int16(kmsg.SyncGroup), min: 0, max: 5, handle: handle(s, s.syncGroup)},
		{key: int16(kmsg.DescribeGroups), min: 0, max: 6, handle: handle(s, s.describeGroups)},
		{key: int16(kmsg.ListGroups), min: 0, max: 5, handle: handle(s, s.listGroups)},
		{key: apiVersionsKey, min: 0, max: 5, handle: handle(s, s.apiVersions)},
		{key: int16(kmsg.CreateTopics), min: 0, max: 7, forwarded: true, handle: handle(s, s.createTopics)},
		{key: int16(kmsg.DeleteTopics), min: 0, max: 6, forwarded: true, handle: handle(s, s.deleteTopics)},
		{key: int16(kmsg.DeleteRecords), min: 0, max: 2, handle: handle(s, s.deleteRecords)},
		{key: int16(kmsg.InitProducerID), min: 0, max: 5, handle: handle(s, s.initProducerID)},
		{key: int16(kmsg.OffsetForLeaderEpoch), min: 0, max: 4, handle: handle(s, s.offsetForLeaderEpoch)},
		{key: int16(kmsg.DescribeACLs), min: 0, max: 3, handle: handle(s, s.describeACLs)},
		{key: int16(kmsg.CreateACLs), min: 0, max: 3, forwarded: true, handle: handle(s, s.createACLs)},
		{key: int16(kmsg.DeleteACLs), min: 0, max: 3, forwarded: true, handle: handle(s, s.deleteACLs)},
		{key: int16(kmsg.DescribeConfigs), min: 0, max: 4, handle: handle(s, s.describeConfigs)},
		{key: int16(kmsg.AlterConfigs), min: 0, max: 2, forwarded: true, handle: handle(s, s.alterConfigs)},
		{key: int16(kmsg.AlterReplicaLogDirs), min: 0, max: 2, handle: handle(s, s.alterReplicaLogDirs)},
		{key: int16(kmsg.DescribeLogDirs), min: 0, max: 5, handle: handle(s, s.describeLogDirs)},
		{key: int16(kmsg.CreatePartitions), min: 0, max: 3, forwarded: true, handle: handle(s, s.createPartitions)},
		{key: int16(kmsg.DeleteGroups), min: 0, max: 3, handle: handle(s, s.deleteGroups)},
		{key: int16(kmsg.ElectLeaders), min: 0, max: 2, forwarded: true, handle: handle(s, s.electLeaders)},
		{key: int16(kmsg.IncrementalAlterConfigs), min: 0, max: 1, forwarded: true, handle: handle(s, s.incrementalAlterConfigs)},
		{key: int16(kmsg.AlterPartitionAssignments), min: 0, max: 1, forwarded: true, handle: handle(s, s.alterPartitionReassignments)},
		{key: int16(kmsg.ListPartitionReassignments), min: 0, max: 0, forwarded: true, handle: handle(s, s.listPartitionReassignments)},
		{key: int16(kmsg.OffsetDelete), min: 0, max: 0, handle: handle(s, s.offsetDelete)},
		{key: int16(kmsg.DescribeClientQuotas), min: 0, max: 1, handle: handle(s, s.describeClientQuotas)},
		{key: int16(kmsg.DescribeUserSCRAMCredentials), min: 0, max: 0, handle: handle(s, s.describeUserSCRAM)},
		{key: int16(kmsg.DescribeCluster), min: 0, max: 2, handle: handle(s, s.describeCluster)},
		{key: int16(kmsg.DescribeProducers), min: 0, max: 0, handle: handle(s, s.describeProducers)},
		{key: int16(kmsg.GetTelemetrySubscriptions), min: 0, max: 0, unlisted: true, handle: handle(s, s.getTelemetrySubscriptions)},
		{key: int16(kmsg.PushTelemetry), min: 0, max: 0, unlisted: true, handle: handle(s, s.pushTelemetry)},
		{key: int16(kmsg.ListConfigResources), min: 0, max: 1, handle: handle(s, s.listConfigResources)},
		{key: int16(kmsg.DescribeTopicPartitions), min: 0, max: 0, handle: handle(s, s.describeTopicPartitions)},
	}
}

// controllerTable lists what is served on controller listeners, as Kafka's controllers do.
func (s *Server) controllerTable() []api {
	table := []api{
		{key: apiVersionsKey, min: 0, max: 5, handle: handle(s, s.apiVersions)},
		{key: int16(kmsg.Envelope), min: 0, max: 0, handle: handle(s, s.envelope)},
		{key: int16(kmsg.AlterPartition), min: 2, max: 3, handle: handle(s, s.alterPartition)},
		{key: int16(kmsg.BrokerRegistration), min: 0, max: 4, handle: handle(s, s.brokerRegistration)},
		{key: int16(kmsg.BrokerHeartbeat), min: 0, max: 2, handle: handle(s, s.brokerHeartbeat)},
		{key: int16(kmsg.AllocateProducerIDs), min: 0, max: 0, handle: handle(s, s.allocateProducerIDs)},
		{key: int16(kmsg.AssignReplicasToDirs), min: 0, max: 0, handle: handle(s, s.assignReplicasToDirs)},
	}
	for _, a := range s.table() {
		if a.forwarded {
			table = append(table, a)
		}
	}
	return table
}
