package metrics

import (
	"io"
	"strconv"
	"strings"
	"time"
)

// A Kind is the type of a family.
type Kind string

// The kinds of families.
const (
	KindCounter   Kind = "counter" // only grows, from 0 at the start of the process
	KindGauge     Kind = "gauge"
	KindHistogram Kind = "histogram"
)

// A Family is a metric: samples that differ in the values of its labels.
type Family struct {
	Name   string
	Kind   Kind
	Help   string
	Labels []string
}

// ContentType is what a Writer writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// flushBytes is how much a Writer gathers before it writes.
const flushBytes = 32 << 10

// A Writer writes families and their samples. It allocates nothing per sample: a broker with
// ten thousand partitions has a hundred thousand. It is used by one goroutine.
type Writer struct {
	out    io.Writer
	buf    []byte
	family *Family
	err    error
}

// NewWriter returns a Writer to out.
func NewWriter(out io.Writer) *Writer {
	return &Writer{out: out, buf: make([]byte, 0, flushBytes+4<<10)}
}

// Begin begins a family: the samples that follow are its.
func (w *Writer) Begin(f *Family) {
	w.family = f
	w.buf = append(append(append(w.buf, "# HELP "...), f.Name...), ' ')
	w.buf = appendEscaped(w.buf, f.Help, false)
	w.buf = append(append(append(w.buf, "\n# TYPE "...), f.Name...), ' ')
	w.buf = append(append(w.buf, f.Kind...), '\n')
}

// Int writes a sample. It has a value for each label of the family, or for none of them: a
// sum over all, as Kafka has it beside its topics.
func (w *Writer) Int(value int64, labels ...string) {
	w.name("", labels)
	w.buf = append(w.buf, ' ')
	w.buf = strconv.AppendInt(w.buf, value, 10)
	w.endLine()
}

// Float is Int for a value that is no whole number.
func (w *Writer) Float(value float64, labels ...string) {
	w.name("", labels)
	w.buf = append(w.buf, ' ')
	w.buf = strconv.AppendFloat(w.buf, value, 'g', -1, 64)
	w.endLine()
}

// Bool is Int with 1 for true.
func (w *Writer) Bool(value bool, labels ...string) {
	n := int64(0)
	if value {
		n = 1
	}
	w.Int(n, labels...)
}

// Single writes a family that has one sample.
func (w *Writer) Single(f *Family, value int64) {
	w.Begin(f)
	w.Int(value)
}

// Histogram writes the samples of a histogram, in milliseconds as Kafka's.
func (w *Writer) Histogram(h *Histogram, labels ...string) {
	var count int64
	for i := range h.buckets {
		count += h.buckets[i].Load()
		w.name("_bucket", labels)
		w.le(i)
		w.buf = append(w.buf, ' ')
		w.buf = strconv.AppendInt(w.buf, count, 10)
		w.endLine()
	}
	w.name("_sum", labels)
	w.buf = append(w.buf, ' ')
	w.buf = appendMilliseconds(w.buf, time.Duration(h.sum.Load()))
	w.endLine()
	w.name("_count", labels)
	w.buf = append(w.buf, ' ')
	w.buf = strconv.AppendInt(w.buf, count, 10)
	w.endLine()
}

// le adds the label that names the bound of a bucket.
func (w *Writer) le(bucket int) {
	if last := len(w.buf) - 1; w.buf[last] == '}' {
		w.buf[last] = ','
	} else {
		w.buf = append(w.buf, '{')
	}
	w.buf = append(w.buf, `le="`...)
	if bucket == bucketCount-1 {
		w.buf = append(w.buf, "+Inf"...)
	} else {
		w.buf = appendMilliseconds(w.buf, boundOf(bucket))
	}
	w.buf = append(w.buf, `"}`...)
}

func appendMilliseconds(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, float64(d)/float64(time.Millisecond), 'g', -1, 64)
}

// name writes the name of a sample and its labels.
func (w *Writer) name(suffix string, values []string) {
	w.buf = append(append(w.buf, w.family.Name...), suffix...)
	if len(values) == 0 {
		return
	}
	w.buf = append(w.buf, '{')
	for i, value := range values {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = append(append(w.buf, w.family.Labels[i]...), `="`...)
		w.buf = appendEscaped(w.buf, value, true)
		w.buf = append(w.buf, '"')
	}
	w.buf = append(w.buf, '}')
}

// appendEscaped appends text so that it stays on its line and, as a label value, within its
// quotes. What is no UTF-8 would make Prometheus refuse everything.
func appendEscaped(b []byte, text string, quoted bool) []byte {
	if !needsEscape(text) {
		return append(b, text...)
	}
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case r == '\\':
			b = append(b, `\\`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '"' && quoted:
			b = append(b, `\"`...)
		default:
			b = append(b, string(r)...)
		}
	}
	return b
}

func needsEscape(text string) bool {
	for i := range len(text) {
		if c := text[i]; c == '\\' || c == '\n' || c == '"' || c >= 0x80 {
			return true
		}
	}
	return false
}

func (w *Writer) endLine() {
	w.buf = append(w.buf, '\n')
	if len(w.buf) >= flushBytes {
		w.Flush()
	}
}

// Flush writes what was gathered. It returns the first error of all writes; after one nothing
// more is written.
func (w *Writer) Flush() error {
	if w.err == nil && len(w.buf) > 0 {
		_, w.err = w.out.Write(w.buf)
	}
	w.buf = w.buf[:0]
	return w.err
}
