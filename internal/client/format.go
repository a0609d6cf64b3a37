package client

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A Format writes a record as a pattern says. The letters are kcat's.
type Format struct{ parts []formatPart }

type formatPart func(dst []byte, r *kgo.Record) []byte

// FormatHelp lists the letters of a pattern.
const FormatHelp = `%t topic, %p partition, %o offset, %k key, %v or %s value, %K and %S their sizes (-1: null),
%h headers as name=value,..., %T timestamp in ms, %d timestamp as a date, %e leader epoch, %% a percent sign; \n \t \\ as usual`

// ParseFormat reads a pattern.
func ParseFormat(pattern string) (*Format, error) {
	f := &Format{}
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		if c != '%' && c != '\\' {
			f.literal(c)
			continue
		}
		i++
		if i == len(pattern) {
			return nil, fmt.Errorf("format %q ends in a lone %q", pattern, c)
		}
		if c == '\\' {
			if err := f.escape(pattern, pattern[i]); err != nil {
				return nil, err
			}
			continue
		}
		part, ok := formatLetters[pattern[i]]
		if !ok {
			return nil, fmt.Errorf("format %q: there is no %%%c; %s", pattern, pattern[i], FormatHelp)
		}
		f.parts = append(f.parts, part)
	}
	return f, nil
}

func (f *Format) literal(c byte) {
	f.parts = append(f.parts, func(dst []byte, _ *kgo.Record) []byte { return append(dst, c) })
}

func (f *Format) escape(pattern string, c byte) error {
	i := strings.IndexByte(`nt\`, c)
	if i < 0 {
		return fmt.Errorf("format %q: there is no \\%c, only \\n, \\t and \\\\", pattern, c)
	}
	f.literal("\n\t\\"[i])
	return nil
}

func (f *Format) write(out io.Writer, r *kgo.Record) error {
	var line []byte
	for _, part := range f.parts {
		line = part(line, r)
	}
	_, err := out.Write(line)
	return err
}

var formatLetters = map[byte]formatPart{
	'%': func(dst []byte, _ *kgo.Record) []byte { return append(dst, '%') },
	't': func(dst []byte, r *kgo.Record) []byte { return append(dst, r.Topic...) },
	'p': func(dst []byte, r *kgo.Record) []byte { return strconv.AppendInt(dst, int64(r.Partition), 10) },
	'o': func(dst []byte, r *kgo.Record) []byte { return strconv.AppendInt(dst, r.Offset, 10) },
	'k': func(dst []byte, r *kgo.Record) []byte { return append(dst, r.Key...) },
	'v': func(dst []byte, r *kgo.Record) []byte { return append(dst, r.Value...) },
	's': func(dst []byte, r *kgo.Record) []byte { return append(dst, r.Value...) },
	'K': func(dst []byte, r *kgo.Record) []byte { return appendSize(dst, r.Key) },
	'S': func(dst []byte, r *kgo.Record) []byte { return appendSize(dst, r.Value) },
	'h': appendHeaders,
	'T': func(dst []byte, r *kgo.Record) []byte { return strconv.AppendInt(dst, r.Timestamp.UnixMilli(), 10) },
	'd': func(dst []byte, r *kgo.Record) []byte {
		return r.Timestamp.AppendFormat(dst, time.RFC3339Nano)
	},
	'e': func(dst []byte, r *kgo.Record) []byte { return strconv.AppendInt(dst, int64(r.LeaderEpoch), 10) },
}

func appendSize(dst, b []byte) []byte {
	if b == nil {
		return append(dst, "-1"...)
	}
	return strconv.AppendInt(dst, int64(len(b)), 10)
}

func appendHeaders(dst []byte, r *kgo.Record) []byte {
	for i, h := range r.Headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, h.Key...)
		dst = append(dst, '=')
		if h.Value == nil {
			dst = append(dst, "NULL"...)
		}
		dst = append(dst, h.Value...)
	}
	return dst
}
