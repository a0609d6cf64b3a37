// Package human writes sizes and durations for people.
package human

import (
	"fmt"
	"time"
)

// Bytes writes a size in the largest unit that leaves a digit in front of the point: 999 B, 1.5 KiB.
func Bytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	x, i := float64(n)/1024, 0
	for ; x >= 1024 && i < len(units)-1; i++ {
		x /= 1024
	}
	return fmt.Sprintf("%.1f %s", x, units[i])
}

// Duration writes a time in its one or two largest units: 2ms, 1m30s, 3h20m, 1d1h.
func Duration(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	days, rest := d/(24*time.Hour), d%(24*time.Hour)
	if days == 0 {
		return fmt.Sprintf("%dh%dm", rest/time.Hour, rest%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", days, rest/time.Hour)
}

// Ago writes how long ago something was.
func Ago(d time.Duration) string {
	if d < 0 {
		return "in the future"
	}
	return Duration(d) + " ago"
}
