package config

import (
	"strconv"
	"testing"
)

func TestValidateGroup(t *testing.T) {
	b := mustParse(t, "group.consumer.max.session.timeout.ms=50000", "group.share.min.heartbeat.interval.ms=100")
	f := func(want string, pairs ...string) {
		t.Helper()
		overrides := make(map[string]string)
		for i := 0; i < len(pairs); i += 2 {
			overrides[pairs[i]] = pairs[i+1]
		}
		if got := errorText(b.ValidateGroup(overrides)); got != want {
			t.Errorf("%v: got %q, want %q", pairs, got, want)
		}
	}
	f("")
	for _, bound := range groupBounds { // what a group without settings has is within the bounds
		f("", bound.key, strconv.Itoa(Default().Int("group."+bound.key)))
	}
	f("", "consumer.session.timeout.ms", "50000", "consumer.heartbeat.interval.ms", "5000", "share.auto.offset.reset", "earliest")
	f("", "share.heartbeat.interval.ms", " 100 ")
	f("consumer.session.timeout.ms=50001: want at most 50000 (group.consumer.max.session.timeout.ms)", "consumer.session.timeout.ms", "50001")
	f("consumer.session.timeout.ms=44999: want at least 45000 (group.consumer.min.session.timeout.ms)", "consumer.session.timeout.ms", "44999")
	f("share.record.lock.duration.ms=60001: want at most 60000 (group.share.max.record.lock.duration.ms)", "share.record.lock.duration.ms", "60001")
	f("streams.num.standby.replicas=3: want at most 2 (group.streams.max.standby.replicas)", "streams.num.standby.replicas", "3")
	f("consumer.heartbeat.interval.ms=0: want a whole number, at least 1", "consumer.heartbeat.interval.ms", "0")
	f("unknown configuration key consumer.session.timeout (did you mean consumer.session.timeout.ms?)", "consumer.session.timeout", "1")

	b = mustParse(t, "group.consumer.max.heartbeat.interval.ms=90000", "group.consumer.session.timeout.ms=45000")
	f("consumer.heartbeat.interval.ms=45000: want less than consumer.session.timeout.ms, which is 45000", "consumer.heartbeat.interval.ms", "45000")
}
