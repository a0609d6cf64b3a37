package web

import "github.com/gregor-kafka/gregor/internal/metrics"

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

var scrapeSeconds = gauge("gregor_scrape_seconds", "How long it took to gather the metrics before this one.")

// clientTextMax bounds what a client chose and a label repeats.
const clientTextMax = 100

func clip(text string) string { return text[:min(len(text), clientTextMax)] }
