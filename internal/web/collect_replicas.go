package web

import (
	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/internal/replica"
	"github.com/gregor-kafka/gregor/internal/topic"
)

var (
	partitionCount  = gauge("kafka_server_replicamanager_partitioncount", "Partitions that this broker has a replica of.")
	leaderCount     = gauge("kafka_server_replicamanager_leadercount", "Partitions that this broker leads.")
	offlineReplicas = gauge("kafka_server_replicamanager_offlinereplicacount",
		"Replicas whose log directory failed, or whose log could not be opened.")
	underReplicated = gauge("kafka_server_replicamanager_underreplicatedpartitions",
		"Partitions led here that have replicas out of sync.")
	underMinISR = gauge("kafka_server_replicamanager_underminisrpartitioncount",
		"Partitions led here with fewer replicas in sync than min.insync.replicas.")
	atMinISR = gauge("kafka_server_replicamanager_atminisrpartitioncount",
		"Partitions led here that would refuse acks=all with one replica less in sync.")

	partitionUnderReplicated = gauge("kafka_cluster_partition_underreplicated",
		"1 for a partition led here that has replicas out of sync.", "topic", "partition")
	partitionISR = gauge("kafka_cluster_partition_insyncreplicascount",
		"Replicas in sync of a partition led here; 0 for others.", "topic", "partition")
	partitionReplicas = gauge("kafka_cluster_partition_replicascount",
		"Replicas of a partition led here; 0 for others.", "topic", "partition")
	partitionUnderMinISR = gauge("kafka_cluster_partition_underminisr",
		"1 for a partition led here with fewer replicas in sync than min.insync.replicas.", "topic", "partition")
	partitionAtMinISR = gauge("kafka_cluster_partition_atminisr",
		"1 for a partition led here with just min.insync.replicas in sync.", "topic", "partition")

	purgatorySize = gauge("kafka_server_delayedoperationpurgatory_purgatorysize",
		"Waiting requests, each partition that one waits for counted.", "delayedoperation")
	purgatoryOperations = gauge("kafka_server_delayedoperationpurgatory_numdelayedoperations",
		"Waiting requests.", "delayedoperation")
	sessionCount      = gauge("kafka_server_fetchsessioncache_numincrementalfetchsessions", "Fetch sessions that are remembered.")
	sessionPartitions = gauge("kafka_server_fetchsessioncache_numincrementalfetchpartitionscached", "Partitions in fetch sessions.")
	sessionEvictions  = counter("kafka_server_fetchsessioncache_incrementalfetchsessionevictions_total",
		"Fetch sessions that had to make room for others.")
)

// A replicaState is what the samples of a hosted partition are made of.
type replicaState struct {
	partition    topic.Partition
	state        *replica.PartitionState
	minISR       int
	offline      bool
	waitingFetch int
}

func (s *replicaState) underReplicated() bool {
	return s.state.Leading && len(s.state.ISR) < len(s.state.Replicas())
}

func (s *replicaState) underMinISR() bool { return s.state.Leading && len(s.state.ISR) < s.minISR }

func (s *replicaState) atMinISR() bool { return s.state.Leading && len(s.state.ISR) == s.minISR }

func stateOf(p *replica.Partition) replicaState {
	s := replicaState{partition: p.ID(), state: p.State(), waitingFetch: p.Waiting()}
	log, err := p.Log()
	if s.offline = err != nil; !s.offline {
		s.minISR = min(log.Config().MinInsyncReplicas, len(s.state.Replicas()))
	}
	return s
}

// Replicas collects what passes through the partitions that this broker hosts.
func Replicas(m *replica.Manager, sessions *replica.Sessions) Collector {
	return func(w *metrics.Writer) {
		var states []replicaState
		m.Partitions(func(p *replica.Partition) { states = append(states, stateOf(p)) })
		sortPartitions(states, func(s replicaState) topic.Partition { return s.partition })
		writeReplicaCounts(w, states)
		writePartitions(w, states[:min(len(states), partitionsMax)])
		writeTopics(w, m)
		writePurgatory(w, m, states)
		stats := sessions.Stats()
		w.Single(sessionCount, int64(stats.Sessions))
		w.Single(sessionPartitions, int64(stats.Partitions))
		w.Single(sessionEvictions, stats.Evictions)
	}
}

func writeReplicaCounts(w *metrics.Writer, states []replicaState) {
	count := func(f *metrics.Family, holds func(*replicaState) bool) {
		n := int64(0)
		for i := range states {
			n += number(holds(&states[i]))
		}
		w.Single(f, n)
	}
	w.Single(partitionCount, int64(len(states)))
	count(leaderCount, func(s *replicaState) bool { return s.state.Leading })
	count(offlineReplicas, func(s *replicaState) bool { return s.offline })
	count(underReplicated, (*replicaState).underReplicated)
	count(underMinISR, (*replicaState).underMinISR)
	count(atMinISR, (*replicaState).atMinISR)
}

func writePartitions(w *metrics.Writer, states []replicaState) {
	each := eachOf(w, states, func(s *replicaState) []string { return partitionLabels(s.partition) })
	led := func(s *replicaState, list []int32) int64 {
		if !s.state.Leading {
			return 0
		}
		return int64(len(list))
	}
	each(partitionReplicas, func(s *replicaState) int64 { return led(s, s.state.Replicas()) })
	each(partitionISR, func(s *replicaState) int64 { return led(s, s.state.ISR) })
	each(partitionUnderReplicated, func(s *replicaState) int64 { return number(s.underReplicated()) })
	each(partitionUnderMinISR, func(s *replicaState) int64 { return number(s.underMinISR()) })
	each(partitionAtMinISR, func(s *replicaState) int64 { return number(s.atMinISR()) })
}

func writePurgatory(w *metrics.Writer, m *replica.Manager, states []replicaState) {
	waiting := 0
	for i := range states {
		waiting += states[i].waitingFetch
	}
	produces := int64(m.DelayedProduces())
	w.Begin(purgatorySize)
	w.Int(int64(waiting), "Fetch")
	w.Int(produces, "Produce")
	w.Begin(purgatoryOperations)
	w.Int(int64(m.DelayedFetches()), "Fetch")
	w.Int(produces, "Produce")
}
