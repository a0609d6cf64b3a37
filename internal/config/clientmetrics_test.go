package config

import (
	"errors"
	"testing"
)

// What Kafka 4.4 answers: INVALID_REQUEST where a *SubscriptionError is wanted, else
// INVALID_CONFIG.
func TestValidateClientMetrics(t *testing.T) {
	f := func(want error, key, value string) {
		t.Helper()
		err := ValidateClientMetrics(map[string]string{key: value, "metrics": "*"})
		var refused *SubscriptionError
		switch {
		case (err == nil) != (want == nil), errors.As(err, &refused) != errors.As(want, new(*SubscriptionError)):
			t.Errorf("%s=%s: got %v, want %T", key, value, err, want)
		}
	}
	config, request := error(&ValueError{}), error(&SubscriptionError{})
	for _, ms := range []string{"100", " 5000 ", "3600000"} {
		f(nil, "interval.ms", ms)
	}
	for _, ms := range []string{"99", "3600001", "0", "-1"} {
		f(request, "interval.ms", ms)
	}
	f(config, "interval.ms", "soon")
	f(request, "push.ms", "1")
	f(request, "", "1")

	for _, match := range []string{
		"", "client_id=kcl.*,client_software_name=franz-go", " client_source_port = 9[0-9]+ ,client_instance_id=a",
		"client_source_address=127\\..*", "client_software_version=(?!3).*", "client_id=a++",
	} {
		f(nil, "match", match)
	}
	for _, match := range []string{
		"client_id", "client_id=", "=a", "rack=a", "client_id=a=b", "client_id=a,", "client_id=(", "client_id=)", "client_id=[a", "client_id=*", "client_id=\\",
	} {
		f(config, "match", match)
	}
}
