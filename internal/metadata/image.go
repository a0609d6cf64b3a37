package metadata

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// NoLeader is the leader of a partition that has none.
const NoLeader = -1

// Values of Partition.RecoveryState.
const (
	Recovered  = 0
	Recovering = 1 // after an unclean election
)

// An Image is the metadata of the cluster after all records up to Offset. It never changes and
// may be read by any goroutine; nothing that it returns may be modified.
type Image struct {
	ClusterID string
	Offset    int64 // of the last record, -1 in the empty image
	Epoch     int32 // leader epoch of the last record

	// NextProducerID is the first producer id that was never handed out.
	NextProducerID int64

	features     map[string]int16
	brokers      map[int32]*Broker
	controllers  map[int32]*RegisterControllerRecord
	topics       cowMap[string, *Topic]
	topicIDs     cowMap[uuid.UUID, *Topic]
	collisions   cowMap[string, string] // topic.CollisionKey to the name, of names with '.' or '_'
	partitions   int                    // of all topics
	configs      cowMap[ConfigResource, map[string]string]
	clientQuotas map[string]*ClientQuota // by QuotaEntity.key
	acls         map[uuid.UUID]*AccessControlEntryRecord
	scram        map[ScramKey]*UserScramCredentialRecord
	tokens       map[string]*DelegationTokenRecord
	zkMigration  *ZkMigrationStateRecord // kept so that a snapshot says what the log said
}

// NewImage returns the image before the first record.
func NewImage(clusterID string) *Image { return &Image{ClusterID: clusterID, Offset: -1} }

// A Topic has partitions numbered by their place in the slice.
type Topic struct {
	Name       string
	ID         uuid.UUID
	Partitions []*Partition
}

// A Partition is the state of one partition as the controller decided it. LeaderEpoch grows
// with each new leader, PartitionEpoch with each change.
type Partition struct {
	Replicas         []int32     // the first one is preferred as leader
	Directories      []uuid.UUID // log directory of each replica
	ISR              []int32
	RemovingReplicas []int32
	AddingReplicas   []int32
	ELR              []int32 // eligible leader replicas (KIP-966)
	LastKnownELR     []int32
	Leader           int32 // NoLeader for none
	LeaderEpoch      int32
	PartitionEpoch   int32
	RecoveryState    int8
}

// Directory returns the log directory of the replica on a broker; ok says whether the broker
// has one.
func (p *Partition) Directory(broker int32) (dir uuid.UUID, ok bool) {
	i := slices.Index(p.Replicas, broker)
	if i < 0 {
		return uuid.Zero, false
	}
	if i >= len(p.Directories) {
		return uuid.Unassigned, true
	}
	return p.Directories[i], true
}

// A Broker is a registration.
type Broker struct {
	ID                   int32
	Epoch                int64 // names one life of the process
	IncarnationID        uuid.UUID
	Endpoints            []BrokerEndpoint
	Features             []BrokerFeature
	Rack                 *string
	Fenced               bool
	InControlledShutdown bool
	LogDirs              []uuid.UUID
	CordonedLogDirs      []uuid.UUID
	migratingZk          bool
}

// Serves reports whether a log directory of a replica is online, as far as the broker has told: one
// that is not known yet counts as online, and so does any if the broker has told of none. (KIP-858;
// Kafka class DirectoryId.)
func (b *Broker) Serves(dir uuid.UUID) bool {
	switch {
	case dir.IsZero() || dir == uuid.Unassigned:
		return true
	case dir == uuid.Lost:
		return false
	}
	return len(b.LogDirs) == 0 || slices.Contains(b.LogDirs, dir)
}

// Cordoned reports whether every log directory of the broker is cordoned, so that it takes no new
// replicas. (KIP-1066)
func (b *Broker) Cordoned() bool {
	open := func(dir uuid.UUID) bool { return !slices.Contains(b.CordonedLogDirs, dir) }
	return len(b.LogDirs) > 0 && !slices.ContainsFunc(b.LogDirs, open)
}

// Online reports whether a broker is there and serves its replica of a partition.
func (i *Image) Online(p *Partition, broker int32) bool {
	b := i.brokers[broker]
	dir, ok := p.Directory(broker)
	return ok && b != nil && !b.Fenced && b.Serves(dir)
}

// Active reports whether the broker may lead partitions.
func (b *Broker) Active() bool { return b != nil && !b.Fenced && !b.InControlledShutdown }

// Resource types of configurations (Kafka class ConfigResource.Type).
const (
	ResourceTopic         int8 = 2
	ResourceBroker        int8 = 4 // the empty name stands for the default of all brokers
	ResourceBrokerLogger  int8 = 8
	ResourceClientMetrics int8 = 16
	ResourceGroup         int8 = 32
)

// A ConfigResource names what a set of configurations belongs to.
type ConfigResource struct {
	Type int8
	Name string
}

// A ScramKey names one credential of a user; mechanism 1 is SCRAM-SHA-256, 2 is SCRAM-SHA-512.
type ScramKey struct {
	User      string
	Mechanism int8
}

// A ClientQuota is the set of limits of an entity.
type ClientQuota struct {
	Entity []EntityData // ordered by type
	Limits map[string]float64
}

// Topic returns the topic of that name, or nil.
func (i *Image) Topic(name string) *Topic { return i.topics.at(name) }

// TopicByID returns the topic with that id, or nil.
func (i *Image) TopicByID(id uuid.UUID) *Topic { return i.topicIDs.at(id) }

// CollidingTopic returns a topic whose name differs from name only in '.' and '_', or "".
func (i *Image) CollidingTopic(name string) string {
	if other := i.collisions.at(topic.CollisionKey(name)); other != name {
		return other
	}
	return ""
}

// Topics walks all topics in no order.
func (i *Image) Topics() iter.Seq[*Topic] {
	return func(yield func(*Topic) bool) {
		for _, t := range i.topics.all() {
			if !yield(t) {
				return
			}
		}
	}
}

// TopicNames returns the names in ascending order. It sorts: not for a hot path.
func (i *Image) TopicNames() []string {
	names := make([]string, 0, i.topics.size)
	for name := range i.topics.all() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// NumTopics returns the number of topics.
func (i *Image) NumTopics() int { return i.topics.size }

// NumPartitions returns the number of partitions of all topics.
func (i *Image) NumPartitions() int { return i.partitions }

// Partition returns a partition, or nil when the topic or the partition is unknown.
func (i *Image) Partition(p topic.Partition) *Partition {
	t := i.Topic(p.Topic)
	if t == nil || p.Partition < 0 || int(p.Partition) >= len(t.Partitions) {
		return nil
	}
	return t.Partitions[p.Partition]
}

// Broker returns a registration, or nil.
func (i *Image) Broker(id int32) *Broker { return i.brokers[id] }

// Brokers returns all registrations, fenced ones too, by ascending id.
func (i *Image) Brokers() []*Broker {
	return slices.SortedFunc(maps.Values(i.brokers), func(a, b *Broker) int { return cmp.Compare(a.ID, b.ID) })
}

// Configs returns the configurations set on a resource; nil when there are none.
func (i *Image) Configs(r ConfigResource) map[string]string { return i.configs.at(r) }

// TopicConfigs returns the configurations set on a topic; nil when there are none.
func (i *Image) TopicConfigs(name string) map[string]string {
	return i.Configs(ConfigResource{ResourceTopic, name})
}

// ConfigResources walks the resources that have configurations, in no order.
func (i *Image) ConfigResources() iter.Seq2[ConfigResource, map[string]string] {
	return i.configs.all()
}

// Feature returns the finalized level of a feature, 0 when it is not finalized.
func (i *Image) Feature(name string) int16 { return i.features[name] }

// Features returns the finalized levels.
func (i *Image) Features() map[string]int16 { return i.features }

// ClientQuotas walks the quotas in no order.
func (i *Image) ClientQuotas() iter.Seq[*ClientQuota] { return maps.Values(i.clientQuotas) }

// ClientQuota returns the quota of an entity, or nil.
func (i *Image) ClientQuota(entity []EntityData) *ClientQuota {
	return i.clientQuotas[quotaKey(entity)]
}

// ACLs returns the access control entries by id.
func (i *Image) ACLs() map[uuid.UUID]*AccessControlEntryRecord { return i.acls }

// Scram returns the SCRAM credentials.
func (i *Image) Scram() map[ScramKey]*UserScramCredentialRecord { return i.scram }

// DelegationTokens returns the tokens by id.
func (i *Image) DelegationTokens() map[string]*DelegationTokenRecord { return i.tokens }
