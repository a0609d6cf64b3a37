package replica

import (
	"iter"
	"sync/atomic"
)

// A TopicStat is something that is counted for each topic.
type TopicStat int

// What is counted. Append counts what comes in; the rest, which is about requests, package
// api does: once for each partition that a request names, as Kafka.
const (
	MessagesIn TopicStat = iota // appended records, coordinators' too
	BytesIn
	ProduceRequests
	FailedProduceRequests
	ProduceConversions // sets whose format was not the log's
	BytesRejected      // of sets that are too large
	InvalidMagic       // sets of a format that the request may not have
	InvalidCRC
	FetchRequests
	BytesOut
	FailedFetchRequests
	FetchConversions        // batches that were converted for old clients
	InvalidOffsetOrSequence // sets that break other rules about records and producers
	NumTopicStats
)

// TopicStats counts what passes through the partitions of a topic that this broker hosts,
// from the start of the broker, or the topic's, on. (Kafka class BrokerTopicMetrics.)
type TopicStats [NumTopicStats]atomic.Int64

// Add adds n to what is counted.
func (s *TopicStats) Add(stat TopicStat, n int) { s[stat].Add(int64(n)) }

// addAll adds everything that o has counted.
func (s *TopicStats) addAll(o *TopicStats) {
	for i := range s {
		s[i].Add(o[i].Load())
	}
}

// Topics yields the topics that this broker hosts, in no order.
func (m *Manager) Topics() iter.Seq[*Topic] { return m.topics.all }

// Stats sums up what was counted for all topics, also those that are gone.
func (m *Manager) Stats() *TopicStats {
	sum := &TopicStats{}
	sum.addAll(&m.gone)
	for t := range m.topics.all {
		sum.addAll(&t.Stats)
	}
	return sum
}

// DelayedFetches returns how many fetches wait for more bytes.
func (m *Manager) DelayedFetches() int { return int(m.delayedFetches.Load()) }

// DelayedProduces returns how many acknowledgements wait for the high watermark, each for one
// partition.
func (m *Manager) DelayedProduces() (n int) {
	m.Partitions(func(p *Partition) { n += p.produces.Len() })
	return max(0, n-int(m.delayedDeletes.Load())) // which wait on the same lists
}
