package broker

import (
	"testing"

	"github.com/gregor-kafka/gregor/internal/controller"
	"github.com/gregor-kafka/gregor/internal/metadata"
)

// A client metrics subscription with an unknown key, or an interval out of bounds, is
// INVALID_REQUEST in Kafka; what else is wrong in it is INVALID_CONFIG, the controller's
// word for an error without a kind.
func TestClientMetricsRefusals(t *testing.T) {
	f := func(key, value string, want controller.Kind) {
		t.Helper()
		r := metadata.ConfigResource{Type: metadata.ResourceClientMetrics, Name: "s"}
		err := new(settings).validate(r, map[string]string{key: value})
		if err == nil || controller.KindOf(err) != want {
			t.Errorf("%s=%s: got %v (%v), want %v", key, value, err, controller.KindOf(err), want)
		}
	}
	f("push.ms", "1", controller.InvalidRequest)
	f("interval.ms", "99", controller.InvalidRequest)
	f("interval.ms", "soon", "")
	f("match", "client_id=(", "")
}
