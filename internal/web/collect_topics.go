package web

import (
	"cmp"
	"slices"

	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/internal/replica"
)

const topicMetrics = "kafka_server_brokertopicmetrics_"

// topicFamilies are Kafka's BrokerTopicMetrics: a sample for each topic, and one without a
// label for all, also those that are gone.
var topicFamilies = [replica.NumTopicStats]*metrics.Family{
	replica.MessagesIn:            counter(topicMetrics+"messagesin_total", "Records appended.", "topic"),
	replica.BytesIn:               counter(topicMetrics+"bytesin_total", "Bytes appended.", "topic"),
	replica.BytesOut:              counter(topicMetrics+"bytesout_total", "Bytes of records sent to consumers.", "topic"),
	replica.BytesRejected:         counter(topicMetrics+"bytesrejected_total", "Bytes of record sets that were too large.", "topic"),
	replica.ProduceRequests:       counter(topicMetrics+"totalproducerequests_total", "Produce requests, each partition of one counted.", "topic"),
	replica.FailedProduceRequests: counter(topicMetrics+"failedproducerequests_total", "Those of them that got an error.", "topic"),
	replica.FetchRequests:         counter(topicMetrics+"totalfetchrequests_total", "Fetch requests, each partition of one counted.", "topic"),
	replica.FailedFetchRequests:   counter(topicMetrics+"failedfetchrequests_total", "Those of them that got an error.", "topic"),
	replica.ProduceConversions: counter(topicMetrics+"producemessageconversions_total",
		"Record sets that were converted to the message format of the topic.", "topic"),
	replica.FetchConversions: counter(topicMetrics+"fetchmessageconversions_total",
		"Batches that were converted for clients older than their format.", "topic"),
	replica.InvalidMagic: counter(topicMetrics+"invalidmagicnumberrecords_total",
		"Record sets of a format that the request may not have.", "topic"),
	replica.InvalidCRC: counter(topicMetrics+"invalidmessagecrcrecords_total", "Record sets that arrived broken.", "topic"),
	replica.InvalidOffsetOrSequence: counter(topicMetrics+"invalidoffsetorsequencerecords_total",
		"Record sets that break another rule about records or producers.", "topic"),
}

func writeTopics(w *metrics.Writer, m *replica.Manager) {
	topics := slices.SortedFunc(m.Topics(), func(a, b *replica.Topic) int { return cmp.Compare(a.Name, b.Name) })
	sum := m.Stats()
	for stat, f := range topicFamilies {
		w.Begin(f)
		w.Int(sum[stat].Load())
		for _, t := range topics {
			w.Int(t.Stats[stat].Load(), t.Name)
		}
	}
}
