package api

import "github.com/twmb/franz-go/pkg/kmsg"

// adminAPIs is the table of what describes and changes the cluster.
func (s *Server) adminAPIs() []api {
	return []api{
		{key: int16(kmsg.Metadata), min: 0, max: 13, handle: handle(s, s.metadata)},
		{key: int16(kmsg.CreateTopics), min: 0, max: 7, handle: handle(s, s.createTopics)},
		{key: int16(kmsg.DeleteTopics), min: 0, max: 6, handle: handle(s, s.deleteTopics)},
		{key: int16(kmsg.InitProducerID), min: 0, max: 5, handle: handle(s, s.initProducerID)},
		{key: int16(kmsg.DescribeACLs), min: 0, max: 3, handle: handle(s, s.describeACLs)},
		{key: int16(kmsg.CreateACLs), min: 0, max: 3, handle: handle(s, s.createACLs)},
		{key: int16(kmsg.DeleteACLs), min: 0, max: 3, handle: handle(s, s.deleteACLs)},
		{key: int16(kmsg.DescribeConfigs), min: 0, max: 4, handle: handle(s, s.describeConfigs)},
		{key: int16(kmsg.AlterConfigs), min: 0, max: 2, handle: handle(s, s.alterConfigs)},
		{key: int16(kmsg.AlterReplicaLogDirs), min: 0, max: 2, handle: handle(s, s.alterReplicaLogDirs)},
		{key: int16(kmsg.DescribeLogDirs), min: 0, max: 5, handle: handle(s, s.describeLogDirs)},
		{key: int16(kmsg.CreatePartitions), min: 0, max: 3, handle: handle(s, s.createPartitions)},
		{key: int16(kmsg.ElectLeaders), min: 0, max: 2, handle: handle(s, s.electLeaders)},
		{key: int16(kmsg.IncrementalAlterConfigs), min: 0, max: 1, handle: handle(s, s.incrementalAlterConfigs)},
		{key: int16(kmsg.AlterPartitionAssignments), min: 0, max: 1, handle: handle(s, s.alterPartitionReassignments)},
		{key: int16(kmsg.ListPartitionReassignments), min: 0, max: 0, handle: handle(s, s.listPartitionReassignments)},
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
