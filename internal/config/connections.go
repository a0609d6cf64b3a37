package config

import (
	"strconv"
	"strings"
)

const (
	perIPKey     = "max.connections.per.ip"
	overridesKey = "max.connections.per.ip.overrides"
)

// ConnectionOverrides is max.connections.per.ip.overrides: how many connections each of the named
// hosts may have.
func (b *Broker) ConnectionOverrides() map[string]int {
	limits, _ := b.parseOverrides() // checked
	return limits
}

// parseOverrides reads host:count,host:count. A host may be an IPv6 address.
func (b *Broker) parseOverrides() (map[string]int, error) {
	text, _ := b.Get(overridesKey)
	limits := map[string]int{}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		colon := strings.LastIndexByte(item, ':')
		count, err := strconv.ParseInt(strings.TrimSpace(item[colon+1:]), 10, 32)
		if colon < 1 || err != nil || count < 0 {
			return nil, &ValueError{Key: overridesKey, Value: item, Want: "host:count, with a count of at least 0"}
		}
		limits[strings.Trim(strings.TrimSpace(item[:colon]), "[]")] = int(count)
	}
	return limits, nil
}

// checkConnections refuses limits that would keep everybody out.
func (b *Broker) checkConnections() error {
	overrides, err := b.parseOverrides()
	if err != nil {
		return err
	}
	if b.Int(perIPKey) == 0 && len(overrides) == 0 {
		return &ValueError{Key: perIPKey, Value: "0", Want: "at least 1 unless " + overridesKey + " names hosts"}
	}
	return nil
}
