package metadata

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gregor-kafka/gregor/internal/topic"
	"github.com/gregor-kafka/gregor/internal/uuid"
)

// Apply returns the image after records, the last of which is at offset in a batch of the given
// leader epoch. On error nothing has changed. The records belong to the images from then on.
func (i *Image) Apply(records []Record, offset int64, epoch int32) (*Image, *Delta, error) {
	e := newEdit(i)
	for n, r := range records {
		if err := e.apply(r); err != nil {
			return nil, nil, fmt.Errorf("%w: record %d of %d (%T): %w", ErrCorrupt, n+1, len(records), r, err)
		}
	}
	return e.finish(offset, epoch)
}

// An edit builds the next image. Maps that it has copied are marked, so that each is copied
// once.
type edit struct {
	before *Image
	img    *Image // not yet visible to anyone else
	delta  *Delta

	topics     cowEdit[string, *Topic]
	topicIDs   cowEdit[uuid.UUID, *Topic]
	collisions cowEdit[string, string]
	configs    cowEdit[ConfigResource, map[string]string]

	ownedTopics  map[*Topic]bool                 // topics of the next image only
	pending      map[*Topic]map[int32]*Partition // partitions that came before lower numbers
	ownedConfigs map[ConfigResource]bool
	changed      map[string]bool // topic names that were touched
	owned        struct{ features, brokers, controllers, quotas, acls, scram, tokens bool }
	brokers      map[int32]bool
}

func newEdit(before *Image) *edit {
	img := *before
	return &edit{
		before: before, img: &img, delta: &Delta{Before: before, After: &img},
		topics: before.topics.edit(), topicIDs: before.topicIDs.edit(), collisions: before.collisions.edit(), configs: before.configs.edit(),
		ownedTopics: map[*Topic]bool{}, pending: map[*Topic]map[int32]*Partition{},
		ownedConfigs: map[ConfigResource]bool{}, changed: map[string]bool{}, brokers: map[int32]bool{},
	}
}

// writable returns m, of which it makes a private copy the first time.
func writable[K comparable, V any](m *map[K]V, owned *bool) map[K]V {
	if !*owned {
		*owned = true
		if *m = maps.Clone(*m); *m == nil {
			*m = make(map[K]V)
		}
	}
	return *m
}

func (e *edit) apply(r Record) error {
	switch r := r.(type) {
	case *TopicRecord:
		return e.newTopic(r)
	case *PartitionRecord:
		return e.partition(r)
	case *PartitionChangeRecord:
		return e.partitionChange(r)
	case *RemoveTopicRecord:
		return e.removeTopic(r)
	case *ClearElrRecord:
		e.clearELR(r)
	case *ConfigRecord:
		e.config(r)
	case *RegisterBrokerRecord:
		e.registerBroker(r)
	case *UnregisterBrokerRecord:
		return e.unregisterBroker(r)
	case *BrokerRegistrationChangeRecord:
		return e.brokerChange(r)
	case *FenceBrokerRecord:
		return e.changeBroker(r.ID, r.Epoch, func(b *Broker) { b.Fenced = true })
	case *UnfenceBrokerRecord:
		return e.changeBroker(r.ID, r.Epoch, func(b *Broker) { b.Fenced = false })
	case *RegisterControllerRecord:
		writable(&e.img.controllers, &e.owned.controllers)[r.ControllerID] = sortedController(r)
	case *UnregisterControllerRecord:
		delete(writable(&e.img.controllers, &e.owned.controllers), r.ControllerID)
	case *FeatureLevelRecord:
		e.feature(r)
	case *ProducerIdsRecord:
		e.img.NextProducerID, e.delta.ProducerIDs = r.NextProducerID, true
	case *ClientQuotaRecord:
		e.clientQuota(r)
	case *AccessControlEntryRecord:
		writable(&e.img.acls, &e.owned.acls)[r.ID], e.delta.ACLs = r, true
	case *RemoveAccessControlEntryRecord:
		delete(writable(&e.img.acls, &e.owned.acls), r.ID)
		e.delta.ACLs = true
	case *UserScramCredentialRecord:
		writable(&e.img.scram, &e.owned.scram)[ScramKey{r.Name, r.Mechanism}], e.delta.Scram = r, true
	case *RemoveUserScramCredentialRecord:
		delete(writable(&e.img.scram, &e.owned.scram), ScramKey{r.Name, r.Mechanism})
		e.delta.Scram = true
	case *DelegationTokenRecord:
		writable(&e.img.tokens, &e.owned.tokens)[r.TokenID], e.delta.DelegationTokens = r, true
	case *RemoveDelegationTokenRecord:
		delete(writable(&e.img.tokens, &e.owned.tokens), r.TokenID)
		e.delta.DelegationTokens = true
	case *ZkMigrationStateRecord:
		e.img.zkMigration = r
	case *NoOpRecord:
	case *BeginTransactionRecord, *EndTransactionRecord, *AbortTransactionRecord:
		return fmt.Errorf("a Transaction must take it out of the batch first")
	default:
		return fmt.Errorf("no rule for the record")
	}
	return nil
}

func (e *edit) newTopic(r *TopicRecord) error {
	if t := e.topics.at(r.Name); t != nil {
		return fmt.Errorf("topic %q exists with id %s", r.Name, t.ID)
	}
	if t := e.topicIDs.at(r.TopicID); t != nil {
		return fmt.Errorf("topic id %s exists with name %q", r.TopicID, t.Name)
	}
	t := &Topic{Name: r.Name, ID: r.TopicID}
	e.ownedTopics[t] = true
	e.putTopic(t)
	if strings.ContainsAny(t.Name, "._") {
		e.collisions.put(topic.CollisionKey(t.Name), t.Name)
	}
	return nil
}

func (e *edit) putTopic(t *Topic) {
	e.topics.put(t.Name, t)
	e.topicIDs.put(t.ID, t)
	e.changed[t.Name] = true
}

// writableTopic returns a topic that may be changed.
func (e *edit) writableTopic(id uuid.UUID) (*Topic, error) {
	t := e.topicIDs.at(id)
	if t == nil {
		return nil, fmt.Errorf("no topic has the id %s", id)
	}
	if !e.ownedTopics[t] {
		t = &Topic{Name: t.Name, ID: t.ID, Partitions: slices.Clone(t.Partitions)}
		e.ownedTopics[t] = true
		e.putTopic(t)
	}
	return t, nil
}

func (e *edit) partition(r *PartitionRecord) error {
	t, err := e.writableTopic(r.TopicID)
	if err != nil {
		return err
	}
	p := newPartition(r)
	switch n := int(r.PartitionID); {
	case n < 0:
		return fmt.Errorf("partition %s-%d", t.Name, n)
	case n < len(t.Partitions):
		t.Partitions[n] = p
	case n == len(t.Partitions):
		t.Partitions = append(t.Partitions, p)
		e.takePending(t)
	default:
		if e.pending[t] == nil {
			e.pending[t] = map[int32]*Partition{}
		}
		e.pending[t][r.PartitionID] = p
	}
	return nil
}

// takePending appends the partitions whose predecessors have arrived.
func (e *edit) takePending(t *Topic) {
	waiting := e.pending[t]
	for {
		n := int32(len(t.Partitions))
		p := waiting[n]
		if p == nil {
			return
		}
		t.Partitions = append(t.Partitions, p)
		if delete(waiting, n); len(waiting) == 0 {
			delete(e.pending, t)
		}
	}
}

func newPartition(r *PartitionRecord) *Partition {
	p := &Partition{
		Replicas: r.Replicas, Directories: r.Directories, ISR: r.ISR, RemovingReplicas: r.RemovingReplicas, AddingReplicas: r.AddingReplicas,
		ELR: r.EligibleLeaderReplicas, LastKnownELR: r.LastKnownELR,
		Leader: r.Leader, LeaderEpoch: r.LeaderEpoch, PartitionEpoch: r.PartitionEpoch, RecoveryState: r.LeaderRecoveryState,
	}
	if slices.Equal(p.ISR, p.Replicas) {
		p.ISR = p.Replicas // the usual case; nobody may change either
	}
	return p
}

// leaderUnchanged is PartitionChangeRecord.Leader when the leader stays.
const leaderUnchanged = -2

func (e *edit) partitionChange(r *PartitionChangeRecord) error {
	t, err := e.writableTopic(r.TopicID)
	if err != nil {
		return err
	}
	if r.PartitionID < 0 || int(r.PartitionID) >= len(t.Partitions) {
		return fmt.Errorf("topic %q has no partition %d", t.Name, r.PartitionID)
	}
	t.Partitions[r.PartitionID] = t.Partitions[r.PartitionID].merge(r)
	return nil
}

// merge returns p after a change. (Kafka method PartitionRegistration.merge.)
func (p *Partition) merge(r *PartitionChangeRecord) *Partition {
	next := *p
	set := func(field *[]int32, v []int32) {
		if v != nil {
			*field = v
		}
	}
	set(&next.Replicas, r.Replicas)
	set(&next.ISR, r.ISR)
	set(&next.RemovingReplicas, r.RemovingReplicas)
	set(&next.AddingReplicas, r.AddingReplicas)
	set(&next.ELR, r.EligibleLeaderReplicas)
	set(&next.LastKnownELR, r.LastKnownELR)
	switch {
	case r.Directories != nil:
		next.Directories = r.Directories
	case r.Replicas != nil:
		next.Directories = carryDirectories(p, r.Replicas)
	}
	if r.Leader != leaderUnchanged {
		next.Leader = r.Leader
		next.LeaderEpoch++
	}
	if r.LeaderRecoveryState >= 0 {
		next.RecoveryState = r.LeaderRecoveryState
	}
	next.PartitionEpoch++
	return &next
}

// carryDirectories keeps the directories of the replicas that stay.
func carryDirectories(p *Partition, replicas []int32) []uuid.UUID {
	dirs := make([]uuid.UUID, len(replicas))
	for i, id := range replicas {
		if dir, ok := p.Directory(id); ok {
			dirs[i] = dir
		} else {
			dirs[i] = uuid.Unassigned
		}
	}
	return dirs
}

func (e *edit) removeTopic(r *RemoveTopicRecord) error {
	t := e.topicIDs.at(r.TopicID)
	if t == nil {
		return fmt.Errorf("no topic has the id %s", r.TopicID)
	}
	e.topics.remove(t.Name)
	e.topicIDs.remove(t.ID)
	if key := topic.CollisionKey(t.Name); t.Name == e.collisions.at(key) {
		e.collisions.remove(key)
	}
	delete(e.pending, t)
	e.changed[t.Name] = true
	if resource := (ConfigResource{ResourceTopic, t.Name}); e.configs.at(resource) != nil {
		e.configs.remove(resource)
		e.ownedConfigs[resource] = false
		e.delta.Configs = append(e.delta.Configs, resource)
	}
	return nil
}

// clearELR forgets the eligible leader replicas of a topic, or of all when the name is empty.
func (e *edit) clearELR(r *ClearElrRecord) {
	clearTopic := func(t *Topic) {
		for n, p := range t.Partitions {
			if len(p.ELR) == 0 && len(p.LastKnownELR) == 0 {
				continue
			}
			owned, err := e.writableTopic(t.ID)
			if err != nil {
				panic("BUG: a topic is in one index only: " + err.Error())
			}
			next := *p
			next.ELR, next.LastKnownELR = nil, nil
			next.PartitionEpoch++
			owned.Partitions[n] = &next
		}
	}
	if r.TopicName != "" {
		if t := e.topics.at(r.TopicName); t != nil {
			clearTopic(t)
		}
		return
	}
	var all []*Topic
	for _, t := range e.topics.all() {
		all = append(all, t)
	}
	for _, t := range all {
		clearTopic(t)
	}
}

func (e *edit) config(r *ConfigRecord) {
	resource := ConfigResource{r.ResourceType, r.ResourceName}
	values := e.configs.at(resource)
	if !e.ownedConfigs[resource] {
		e.ownedConfigs[resource] = true
		if values = maps.Clone(values); values == nil {
			values = make(map[string]string)
		}
		e.configs.put(resource, values)
		e.delta.Configs = append(e.delta.Configs, resource)
	}
	if r.Value != nil {
		values[r.Name] = *r.Value
	} else {
		delete(values, r.Name)
	}
	if len(values) == 0 {
		e.configs.remove(resource)
		e.ownedConfigs[resource] = false
	}
}

func (e *edit) registerBroker(r *RegisterBrokerRecord) {
	e.putBroker(&Broker{
		ID: r.BrokerID, Epoch: r.BrokerEpoch, IncarnationID: r.IncarnationID, Endpoints: r.EndPoints, Features: sortedFeatures(r.Features), Rack: r.Rack,
		Fenced: r.Fenced, InControlledShutdown: r.InControlledShutdown, LogDirs: r.LogDirs, CordonedLogDirs: r.CordonedLogDirs,
		migratingZk: r.IsMigratingZkBroker,
	})
}

// sortedFeatures makes equal registrations look equal: Kafka writes features in any order.
func sortedFeatures(features []BrokerFeature) []BrokerFeature {
	return slices.SortedFunc(slices.Values(features), func(a, b BrokerFeature) int { return strings.Compare(a.Name, b.Name) })
}

func sortedController(r *RegisterControllerRecord) *RegisterControllerRecord {
	c := *r
	c.Features = slices.SortedFunc(slices.Values(r.Features), func(a, b ControllerFeature) int { return strings.Compare(a.Name, b.Name) })
	return &c
}

func (e *edit) putBroker(b *Broker) {
	writable(&e.img.brokers, &e.owned.brokers)[b.ID] = b
	e.brokers[b.ID] = true
}

func (e *edit) unregisterBroker(r *UnregisterBrokerRecord) error {
	if b := e.img.brokers[r.BrokerID]; b == nil || b.Epoch != r.BrokerEpoch {
		return fmt.Errorf("broker %d is not registered with epoch %d", r.BrokerID, r.BrokerEpoch)
	}
	delete(writable(&e.img.brokers, &e.owned.brokers), r.BrokerID)
	e.brokers[r.BrokerID] = true
	return nil
}

// changeBroker changes a copy of a registration.
func (e *edit) changeBroker(id int32, epoch int64, change func(*Broker)) error {
	b := e.img.brokers[id]
	if b == nil || b.Epoch != epoch {
		return fmt.Errorf("broker %d is not registered with epoch %d", id, epoch)
	}
	next := *b
	change(&next)
	e.putBroker(&next)
	return nil
}

func (e *edit) brokerChange(r *BrokerRegistrationChangeRecord) error {
	return e.changeBroker(r.BrokerID, r.BrokerEpoch, func(b *Broker) {
		switchBy(&b.Fenced, r.Fenced)
		switchBy(&b.InControlledShutdown, r.InControlledShutdown)
		if len(r.LogDirs) > 0 {
			b.LogDirs = r.LogDirs
		}
		if r.CordonedLogDirs != nil {
			b.CordonedLogDirs = r.CordonedLogDirs
		}
	})
}

// switchBy makes a field true by 1 and false by -1; 0 leaves it as it is.
func switchBy(field *bool, change int8) {
	switch change {
	case 1:
		*field = true
	case -1:
		*field = false
	}
}

func (e *edit) feature(r *FeatureLevelRecord) {
	features := writable(&e.img.features, &e.owned.features)
	if r.FeatureLevel == 0 {
		delete(features, r.Name)
	} else {
		features[r.Name] = r.FeatureLevel
	}
	e.delta.Features = true
}

func (e *edit) clientQuota(r *ClientQuotaRecord) {
	e.delta.ClientQuotas = true
	quotas := writable(&e.img.clientQuotas, &e.owned.quotas)
	key := quotaKey(r.Entity)
	next := &ClientQuota{Entity: sortedEntity(r.Entity), Limits: map[string]float64{}}
	if old := quotas[key]; old != nil {
		maps.Copy(next.Limits, old.Limits)
	}
	if r.Remove {
		delete(next.Limits, r.Key)
	} else {
		next.Limits[r.Key] = r.Value
	}
	if quotas[key] = next; len(next.Limits) == 0 {
		delete(quotas, key)
	}
}

func sortedEntity(entity []EntityData) []EntityData {
	return slices.SortedFunc(slices.Values(entity), func(a, b EntityData) int { return cmp.Compare(a.EntityType, b.EntityType) })
}

// quotaKey is equal for equal entities, whatever their order.
func quotaKey(entity []EntityData) string {
	var b strings.Builder
	for _, e := range sortedEntity(entity) {
		b.WriteString(strconv.Quote(e.EntityType))
		if e.EntityName != nil {
			b.WriteString(strconv.Quote(*e.EntityName))
		} else {
			b.WriteByte('*')
		}
	}
	return b.String()
}

func (e *edit) finish(offset int64, epoch int32) (*Image, *Delta, error) {
	for t := range e.pending {
		return nil, nil, fmt.Errorf("%w: topic %q has no partition %d but one above it", ErrCorrupt, t.Name, len(t.Partitions))
	}
	img, d := e.img, e.delta
	img.Offset, img.Epoch = offset, epoch
	img.topics, img.topicIDs = e.topics.cowMap, e.topicIDs.cowMap
	img.collisions, img.configs = e.collisions.cowMap, e.configs.cowMap
	for name := range e.changed {
		e.finishTopic(e.before.Topic(name), img.Topic(name))
	}
	for id := range e.brokers {
		d.Brokers = append(d.Brokers, id)
	}
	slices.Sort(d.Brokers)
	d.sortTopics()
	d.Configs = compactResources(d.Configs)
	return img, d, nil
}

func (e *edit) finishTopic(old, now *Topic) {
	if old != nil {
		e.img.partitions -= len(old.Partitions)
	}
	if now != nil {
		e.img.partitions += len(now.Partitions)
	}
	switch {
	case old == nil && now == nil: // created and deleted within the batch
	case now == nil:
		e.delta.DeletedTopics = append(e.delta.DeletedTopics, old)
	case old == nil || old.ID == now.ID:
		e.delta.ChangedTopics = append(e.delta.ChangedTopics, TopicChange{old, now})
	default:
		e.delta.DeletedTopics = append(e.delta.DeletedTopics, old)
		e.delta.ChangedTopics = append(e.delta.ChangedTopics, TopicChange{New: now})
	}
}

// compactResources sorts and drops duplicates.
func compactResources(list []ConfigResource) []ConfigResource {
	slices.SortFunc(list, func(a, b ConfigResource) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(list)
}
