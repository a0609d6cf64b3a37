package config

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// trim cuts what Java's String.trim cuts: blanks and control characters, of ASCII only.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
}

// parseWhole reads a whole number as Java's parseInt and parseLong do: with a sign or
// without, in the decimal digits of any script.
func parseWhole(text string, bits int) (int64, error) {
	return strconv.ParseInt(strings.Map(asciiDigit, trim(text)), 10, bits)
}

// asciiDigit returns 0 to 9 for a decimal digit that takes one char of Java's, and every
// other rune as it is.
func asciiDigit(r rune) rune {
	if r < 0x80 {
		return r
	}
	for _, digits := range unicode.Nd.R16 { // each holds the ten digits of a script, or of several
		if rune(digits.Lo) <= r && r <= rune(digits.Hi) {
			return '0' + (r-rune(digits.Lo))%10
		}
	}
	return r
}

// javaDouble is what Double.parseDouble reads, but for NaN.
var javaDouble = regexp.MustCompile(`^[+-]?(Infinity|` +
	`([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?|` +
	`0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?)$`)

// parseJavaDouble reads a number as Double.parseDouble does: "0.5f" and "0x1p-1" are
// numbers, and what is too large is infinite. NaN is not: it would pass every bound.
func parseJavaDouble(text string) (float64, bool) {
	text = trim(text)
	if !javaDouble.MatchString(text) {
		return 0, false
	}
	x, err := strconv.ParseFloat(strings.TrimRight(text, "fFdD"), 64)
	return x, err == nil || math.IsInf(x, 0)
}

// formatDouble writes x as Java's Double.toString does.
func formatDouble(x float64) string {
	switch abs := math.Abs(x); {
	case math.IsInf(x, 0):
		return strings.TrimPrefix(strconv.FormatFloat(x, 'g', -1, 64), "+") + "inity"
	case abs != 0 && (abs < 1e-3 || abs >= 1e7):
		return formatExponent(x)
	}
	s := strconv.FormatFloat(x, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// formatExponent writes x with an exponent and two digits at least, as near as they get.
func formatExponent(x float64) string {
	text := strconv.FormatFloat(x, 'E', -1, 64)
	if !strings.Contains(text, ".") {
		text = strconv.FormatFloat(x, 'E', 1, 64)
	}
	mantissa, exponent, _ := strings.Cut(text, "E")
	n, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(n)
}
