package text

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"
)

// AppendInt appends a decimal number.
func AppendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }

// AppendBool appends true or false.
func AppendBool(dst []byte, v bool) []byte { return strconv.AppendBool(dst, v) }

// AppendFloat is Java's Double.toString.
func AppendFloat(dst []byte, v float64) []byte {
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 0):
		dst = append(dst, '"')
		if v < 0 {
			dst = append(dst, '-')
		}
		return append(dst, `Infinity"`...)
	case v == 0 || abs >= 1e-3 && abs < 1e7:
		n := len(dst)
		dst = strconv.AppendFloat(dst, v, 'f', -1, 64)
		if bytes.IndexByte(dst[n:], '.') < 0 {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	text := strconv.AppendFloat(nil, v, 'e', -1, 64) // 1e+07 or 1.5e-05
	mantissa, exponent, _ := bytes.Cut(text, []byte("e"))
	dst = append(dst, mantissa...)
	if bytes.IndexByte(mantissa, '.') < 0 {
		dst = append(dst, ".0"...)
	}
	e, _ := strconv.Atoi(string(exponent))
	return AppendInt(append(dst, 'E'), int64(e))
}

const hexDigits = "0123456789ABCDEF"

// AppendString appends a JSON string. Bytes that are no UTF-8 become U+FFFD.
func AppendString(dst, v []byte) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(v); {
		c := v[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRune(v[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, v[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, v[from:i]...)
		dst = appendEscape(dst, c)
		i++
		from = i
	}
	return append(append(dst, v[from:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendRaw appends bytes as text, as kafka-dump-log does: those that are no UTF-8 become
// U+FFFD.
func AppendRaw(dst, v []byte) []byte {
	if utf8.Valid(v) {
		return append(dst, v...)
	}
	for len(v) > 0 {
		r, n := utf8.DecodeRune(v)
		dst = utf8.AppendRune(dst, r)
		v = v[n:]
	}
	return dst
}
