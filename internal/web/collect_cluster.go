package web

import (
	"context"
	"strings"
	"time"

	"github.com/gregor-kafka/gregor/internal/coordinator/group"
	"github.com/gregor-kafka/gregor/internal/metadata"
	"github.com/gregor-kafka/gregor/internal/metrics"
)

// groupsPatience is how long a scrape waits for coordinators that wait for the disk.
const groupsPatience = 100 * time.Millisecond

const (
	controllerMetrics = "kafka_controller_kafkacontroller_"
	groupMetrics      = "kafka_coordinator_group_groupmetadatamanager_"
)

var (
	activeController  = gauge(controllerMetrics+"activecontrollercount", "1 on the broker that is the controller.")
	topicCount        = gauge(controllerMetrics+"globaltopiccount", "Topics of the cluster.")
	globalPartitions  = gauge(controllerMetrics+"globalpartitioncount", "Partitions of the cluster.")
	offlinePartitions = gauge(controllerMetrics+"offlinepartitionscount", "Partitions that have no leader.")
	imbalance         = gauge(controllerMetrics+"preferredreplicaimbalancecount", "Partitions that another than their first replica leads.")
	reassigning       = gauge("kafka_server_replicamanager_reassigningpartitions", "Partitions led here that are being moved.")
	activeBrokers     = gauge(controllerMetrics+"activebrokercount", "Brokers that serve.")
	fencedBrokers     = gauge(controllerMetrics+"fencedbrokercount", "Brokers that are registered and do not serve.")
	metadataOffset    = gauge("gregor_metadata_offset", "Last record of the cluster's metadata that this broker has.")

	groupCount    = gauge(groupMetrics+"numgroups", "Groups that this broker coordinates.")
	groupOffsets  = gauge(groupMetrics+"numoffsets", "Committed offsets of these groups.")
	groupsByState = [group.Dead + 1]*metrics.Family{
		group.Empty:               stateFamily(group.Empty),
		group.PreparingRebalance:  stateFamily(group.PreparingRebalance),
		group.CompletingRebalance: stateFamily(group.CompletingRebalance),
		group.Stable:              stateFamily(group.Stable),
		group.Dead:                stateFamily(group.Dead),
	}
	groupMembers = gauge("gregor_group_members", "Members of the groups that this broker coordinates.")
	groupShards  = gauge("gregor_group_coordinator_partitions", "Partitions of __consumer_offsets that this broker leads.")
	groupLoading = gauge("gregor_group_coordinator_partitions_loading", "Those of them that are being read still.")
)

func stateFamily(s group.State) *metrics.Family {
	return gauge(groupMetrics+"numgroups"+strings.ToLower(s.String()), "Groups in the state "+s.String()+".")
}

// Cluster collects what the metadata says. A broker alone is its controller.
func Cluster(nodeID int32, image func() *metadata.Image) Collector {
	return func(w *metrics.Writer) {
		img := image()
		var offline, imbalanced, moving, active, fenced int64
		for t := range img.Topics() {
			for _, p := range t.Partitions {
				offline += number(p.Leader < 0)
				imbalanced += number(len(p.Replicas) > 0 && p.Leader != p.Replicas[0])
				moving += number(p.Leader == nodeID && len(p.AddingReplicas)+len(p.RemovingReplicas) > 0)
			}
		}
		for _, b := range img.Brokers() {
			active += number(b.Active())
			fenced += number(b.Fenced)
		}
		w.Single(activeController, 1)
		w.Single(topicCount, int64(img.NumTopics()))
		w.Single(globalPartitions, int64(img.NumPartitions()))
		w.Single(offlinePartitions, offline)
		w.Single(imbalance, imbalanced)
		w.Single(reassigning, moving)
		w.Single(activeBrokers, active)
		w.Single(fencedBrokers, fenced)
		w.Single(metadataOffset, img.Offset)
	}
}

// Groups collects what the group coordinator has in its charge.
func Groups(c *group.Coordinator) Collector {
	return func(w *metrics.Writer) {
		ctx, cancel := context.WithTimeout(context.Background(), groupsPatience)
		defer cancel()
		stats := c.Stats(ctx)
		w.Single(groupCount, int64(stats.NumGroups()))
		w.Single(groupOffsets, int64(stats.Offsets))
		for state, n := range [len(groupsByState)]int(stats.Groups) { // as many, or it does not compile
			w.Single(groupsByState[state], int64(n))
		}
		w.Single(groupMembers, int64(stats.Members))
		w.Single(groupShards, int64(stats.Shards))
		w.Single(groupLoading, int64(stats.Loading))
	}
}
