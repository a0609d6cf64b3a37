package config

import (
	"fmt"
)

// groupBounds says which keys of the broker bound a setting of a group; "" for none.
// (Kafka class GroupConfig)
var groupBounds = []struct{ key, low, high string }{
	{"consumer.session.timeout.ms", "group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"},
	{"consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"},
	{"consumer.assignment.interval.ms", "group.consumer.min.assignment.interval.ms", "group.consumer.max.assignment.interval.ms"},
	{"share.session.timeout.ms", "group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"},
	{"share.heartbeat.interval.ms", "group.share.min.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"},
	{"share.assignment.interval.ms", "group.share.min.assignment.interval.ms", "group.share.max.assignment.interval.ms"},
	{"share.record.lock.duration.ms", "group.share.min.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"},
	{"share.delivery.count.limit", "group.share.min.delivery.count.limit", "group.share.max.delivery.count.limit"},
	{"share.partition.max.record.locks", "group.share.min.partition.max.record.locks", "group.share.max.partition.max.record.locks"},
	{"streams.session.timeout.ms", "group.streams.min.session.timeout.ms", "group.streams.max.session.timeout.ms"},
	{"streams.heartbeat.interval.ms", "group.streams.min.heartbeat.interval.ms", "group.streams.max.heartbeat.interval.ms"},
	{"streams.assignment.interval.ms", "group.streams.min.assignment.interval.ms", "group.streams.max.assignment.interval.ms"},
	{"streams.num.standby.replicas", "", "group.streams.max.standby.replicas"},
	{"streams.num.warmup.replicas", "", "group.streams.max.warmup.replicas"},
	{"streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms", ""},
}

// ValidateGroup checks the settings of a group (resource type 32) alone, against the bounds
// that the broker sets, and together: a session must outlast a heartbeat.
func (b *Broker) ValidateGroup(overrides map[string]string) error {
	if err := validate(ScopeGroup, overrides); err != nil {
		return err
	}
	for _, bound := range groupBounds {
		if err := b.checkGroupBound(overrides, bound.key, bound.low, bound.high); err != nil {
			return err
		}
	}
	for _, kind := range []string{"consumer", "share", "streams"} {
		if err := b.checkHeartbeat(overrides, kind+".heartbeat.interval.ms", kind+".session.timeout.ms"); err != nil {
			return err
		}
	}
	return nil
}

func (b *Broker) checkHeartbeat(overrides map[string]string, heartbeat, session string) error {
	_, given := overrides[heartbeat]
	if _, ok := overrides[session]; !ok && !given {
		return nil // the broker's own two are not this group's mistake
	}
	if h, s := b.groupInt(overrides, heartbeat), b.groupInt(overrides, session); h >= s {
		return fmt.Errorf("%s=%d: want less than %s, which is %d", heartbeat, h, session, s)
	}
	return nil
}

func (b *Broker) checkGroupBound(overrides map[string]string, key, low, high string) error {
	if _, ok := overrides[key]; !ok {
		return nil
	}
	n := b.groupInt(overrides, key)
	switch {
	case low != "" && n < b.Int(low):
		return &ValueError{Key: key, Value: overrides[key], Want: fmt.Sprintf("at least %d (%s)", b.Int(low), low)}
	case high != "" && n > b.Int(high):
		return &ValueError{Key: key, Value: overrides[key], Want: fmt.Sprintf("at most %d (%s)", b.Int(high), high)}
	}
	return nil
}

// groupInt is a group's own value, or else the broker's for all groups.
func (b *Broker) groupInt(overrides map[string]string, key string) int {
	if text, ok := overrides[key]; ok {
		if n, err := parseWhole(text, 32); err == nil {
			return int(n)
		}
	}
	return b.Int("group." + key)
}
