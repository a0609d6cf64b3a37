package config

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"
)

// A SubscriptionError is what Kafka calls an invalid request, not an invalid configuration,
// about a client metrics subscription.
type SubscriptionError struct{ Err error }

func (e *SubscriptionError) Error() string { return e.Err.Error() }
func (e *SubscriptionError) Unwrap() error { return e.Err }

// Bounds of interval.ms: a tenth of a second and an hour. (Kafka class ClientMetricsConfigs)
const pushIntervalMsMin, pushIntervalMsMax = 100, 3_600_000

// ValidateClientMetrics checks a client metrics subscription (resource type 16):
// *SubscriptionError, *ValueError.
func ValidateClientMetrics(overrides map[string]string) error {
	err := validate(ScopeClientMetrics, overrides)
	if unknown := (*UnknownKeyError)(nil); errors.As(err, &unknown) {
		return &SubscriptionError{err}
	}
	if err != nil {
		return err
	}
	if text, ok := overrides["interval.ms"]; ok {
		if ms, err := parseWhole(text, 32); err == nil && (ms < pushIntervalMsMin || ms > pushIntervalMsMax) {
			want := fmt.Sprintf("%d to %d", pushIntervalMsMin, pushIntervalMsMax)
			return &SubscriptionError{&ValueError{Key: "interval.ms", Value: text, Want: want}}
		}
	}
	return checkMatches(overrides["match"])
}

// checkMatches checks what clients a subscription is for: a list of property=pattern, where
// neither may be empty or hold a further "=".
func checkMatches(list string) error {
	for _, item := range SplitList(list) {
		property, pattern, _ := strings.Cut(item, "=")
		if pattern == "" || strings.Contains(pattern, "=") || !isClientProperty(strings.TrimSpace(property)) || !mayBeJavaPattern(strings.TrimSpace(pattern)) {
			return &ValueError{Key: "match", Value: list, Want: "a list of property=pattern with client_id, client_instance_id, " +
				"client_software_name, client_software_version, client_source_address or client_source_port"}
		}
	}
	return nil
}

func isClientProperty(name string) bool {
	switch name {
	case "client_id", "client_instance_id", "client_software_name", "client_software_version", "client_source_address", "client_source_port":
		return true
	}
	return false
}

// mayBeJavaPattern refuses what is a mistake in Go's patterns and in Java's. Java has more
// than Go knows, such as lookahead: that passes.
func mayBeJavaPattern(pattern string) bool {
	_, err := syntax.Parse(pattern, syntax.Perl)
	wrong := (*syntax.Error)(nil)
	if !errors.As(err, &wrong) {
		return true
	}
	switch wrong.Code {
	case syntax.ErrMissingParen, syntax.ErrUnexpectedParen, syntax.ErrMissingBracket, syntax.ErrMissingRepeatArgument, syntax.ErrTrailingBackslash:
		return false
	}
	return true
}
