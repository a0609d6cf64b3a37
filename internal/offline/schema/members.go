package schema

import (
	"encoding/base64"
	"strings"
)

// expandMembers decodes the subscriptions and assignments in the JSON of a classic group of
// consumers. Those of other protocols, or that cannot be decoded, stay as they are.
func expandMembers(text string) string {
	if !strings.HasPrefix(text, `{"protocolType":"consumer"`) {
		return text
	}
	text = expand(text, `"subscription":"`, "ConsumerProtocolSubscription")
	return expand(text, `"assignment":"`, "ConsumerProtocolAssignment")
}

// expand replaces the base64 behind each occurrence of a field. The text of strings cannot
// be taken for one: a quote in it is escaped.
func expand(text, field, name string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(text, field)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		encoded, rest, _ := strings.Cut(after, `"`)
		text = rest
		b.WriteString(field[:len(field)-1])
		if decoded, ok := decodeMember(encoded, name); ok {
			b.WriteString(decoded)
		} else {
			b.WriteString(`"` + encoded + `"`)
		}
	}
}

func decodeMember(encoded, name string) (string, bool) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", false
	}
	version, rest, err := cutVersion(data)
	if err != nil || version < 0 {
		return "", false
	}
	s := tables().data[name]
	out, err := appendRecord(nil, s, rest, min(version, s.Max))
	return string(out), err == nil
}
