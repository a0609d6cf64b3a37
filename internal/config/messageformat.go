package config

import "strings"

// MessageFormat returns the message format that a release wrote, by which
// message.format.version names it: v0 up to 0.9, v1 in 0.10, v2 from 0.11 on. A release that
// makes no sense, which is no valid value, counts as one of today's.
func MessageFormat(release string) int8 {
	major, rest, _ := strings.Cut(release, ".")
	minor, _, _ := strings.Cut(rest, ".")
	minor, _, _ = strings.Cut(minor, "-")
	switch {
	case major != "0":
		return 2
	case minor == "8" || minor == "9":
		return 0
	case minor == "10":
		return 1
	}
	return 2
}
