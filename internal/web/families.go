package web

import (
	"strconv"

	"github.com/gregor-kafka/gregor/internal/metrics"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// families are all that the collectors of this package write, in the order of their files.
// doc/metrics.md lists them.
var families []*metrics.Family

func family(kind metrics.Kind, name, help string, labels []string) *metrics.Family {
	f := &metrics.Family{Name: name, Kind: kind, Help: help, Labels: labels}
	families = append(families, f)
	return f
}

func gauge(name, help string, labels ...string) *metrics.Family {
	return family(metrics.KindGauge, name, help, labels)
}

func counter(name, help string, labels ...string) *metrics.Family {
	return family(metrics.KindCounter, name, help, labels)
}

func histogram(name, help string, labels ...string) *metrics.Family {
	return family(metrics.KindHistogram, name, help, labels)
}

// eachOf returns what writes a family with a sample of every item, which has the same labels in
// all of them.
func eachOf[T any](w *metrics.Writer, items []T, labels func(*T) []string) func(f *metrics.Family, value func(*T) int64) {
	texts := make([][]string, len(items))
	for i := range items {
		texts[i] = labels(&items[i])
	}
	return func(f *metrics.Family, value func(*T) int64) {
		w.Begin(f)
		for i := range items {
			w.Int(value(&items[i]), texts[i]...)
		}
	}
}

// partitionLabels are topic and partition.
func partitionLabels(p topic.Partition) []string {
	return []string{p.Topic, strconv.Itoa(int(p.Partition))}
}

var scrapeSeconds = gauge("gregor_scrape_seconds", "How long it took to gather the metrics before this one.")

// clientTextMax bounds what a client chose and a label repeats.
const clientTextMax = 100

func clip(text string) string { return text[:min(len(text), clientTextMax)] }
