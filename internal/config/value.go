package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A ValueError says which value of which key is not allowed and what would be.
type ValueError struct {
	Key, Value string
	Want       string
	Where      string // file and line, "--set", or "" when a client sent it
}

func (e *ValueError) Error() string {
	s := fmt.Sprintf("%s=%s: want %s", e.Key, e.Value, e.Want)
	if e.Where != "" {
		s = e.Where + ": " + s
	}
	return s
}

// A rule is the valid column of a key, parsed.
type rule struct {
	words     string // the rule in words
	low, high float64
	also      string // one more value beside the range, or ""
	oneOf     []string
	foldCase  bool
	nonEmpty  bool // lists: of a value that somebody sets today
	matches   *regexp.Regexp
}

var (
	throttlePattern = regexp.MustCompile(`^(\*|(\d+:\d+)?(,(\d+:\d+)?)*)$`)
	releasePattern  = regexp.MustCompile(`^(0\.([89]|10|11)|[1-9]\d?)(\.\d+)*(-IV\d+)?$`)
	resetPattern    = regexp.MustCompile(`^(latest|earliest|by_duration:P.+)$`)
)

func newRule(valid string) rule {
	r := rule{low: math.Inf(-1), high: math.Inf(1)}
	valid, r.foldCase = strings.CutPrefix(valid, "(case insensitive) ")
	switch {
	case strings.HasPrefix(valid, "[partitionId]"):
		r.matches, r.words = throttlePattern, `"*" or a list of partition:broker`
	case strings.HasPrefix(valid, "[latest"):
		r.matches, r.words = resetPattern, "latest, earliest or by_duration:PnDTnHnMn.nS"
	case valid == "release":
		r.matches, r.words = releasePattern, "a release of Kafka, such as 0.9.0, 0.10.2 or 2.8-IV1"
	case strings.HasPrefix(valid, "non-empty"):
		r.nonEmpty, r.words = true, "a value that is not empty"
	case strings.Contains(valid, ",..."):
		r.setRange(valid)
	case strings.HasPrefix(valid, "["):
		r.oneOf = strings.Split(strings.Trim(valid, "[]"), ", ")
		r.words = "one of " + strings.Join(r.oneOf, ", ")
	}
	return r
}

// setRange reads "[low,...]", "[low,...,high]" and "[low,...,high] or also".
func (r *rule) setRange(valid string) {
	bounds, also, hasAlso := strings.Cut(valid, " or ")
	low, high, _ := strings.Cut(strings.Trim(bounds, "[]"), ",...")
	high = strings.TrimPrefix(high, ",")
	r.low = tableNumber(low)
	r.words = "at least " + low
	if high != "" {
		r.high = tableNumber(high)
		r.words = low + " to " + high
	}
	if hasAlso {
		r.also = also
		r.words += " or " + also
	}
}

// tableNumber reads a number of the table.
func tableNumber(s string) float64 {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic("BUG: config table: " + err.Error())
	}
	return x
}

// canonical checks a value and returns it as Kafka would print it: trimmed, numbers
// without leading zeros, list items once and separated by a comma only.
func (k *Key) canonical(value string) (string, error) {
	var canon string
	var ok bool
	switch k.Type {
	case TypeBoolean:
		canon = strings.ToLower(trim(value))
		ok = canon == "true" || canon == "false"
	case TypeShort:
		canon, ok = k.canonicalInt(value, 16)
	case TypeInt:
		canon, ok = k.canonicalInt(value, 32)
	case TypeLong:
		canon, ok = k.canonicalInt(value, 64)
	case TypeDouble:
		canon, ok = k.canonicalDouble(value)
	case TypeList:
		canon, ok = k.canonicalList(value)
	case TypePassword:
		canon, ok = value, true
	default:
		canon = trim(value)
		ok = k.rule.allowsText(canon)
	}
	if ok {
		return canon, nil
	}
	shown := value
	if k.Sensitive() {
		shown = "(hidden)"
	}
	return "", &ValueError{Key: k.Name, Value: shown, Want: k.want()}
}

func (k *Key) canonicalInt(value string, bits int) (string, bool) {
	n, err := parseWhole(value, bits)
	if err != nil {
		return "", false
	}
	canon := strconv.FormatInt(n, 10)
	return canon, canon == k.rule.also || float64(n) >= k.rule.low && float64(n) <= k.rule.high
}

func (k *Key) canonicalDouble(value string) (string, bool) {
	x, ok := parseJavaDouble(value)
	return formatDouble(x), ok && x >= k.rule.low && x <= k.rule.high
}

func (r *rule) allowsText(value string) bool {
	switch {
	case r.nonEmpty:
		return value != ""
	case r.matches != nil:
		return r.matches.MatchString(value)
	case r.foldCase:
		return slices.ContainsFunc(r.oneOf, func(s string) bool { return strings.EqualFold(s, value) })
	case r.oneOf != nil:
		return slices.Contains(r.oneOf, value)
	}
	return true
}

var typeWords = map[Type]string{
	TypeBoolean: "true or false", TypeShort: "a whole number", TypeInt: "a whole number", TypeLong: "a whole number",
	TypeDouble: "a number", TypeList: "a list", TypeString: "text", TypeClass: "a class name",
}

// want says in words what the key accepts.
func (k *Key) want() string {
	words := typeWords[k.Type]
	switch {
	case k.rule.words == "":
		if k.Type == TypeInt || k.Type == TypeShort {
			bits := map[Type]uint{TypeInt: 31, TypeShort: 15}[k.Type]
			words += fmt.Sprintf(", %d to %d", int64(-1)<<bits, int64(1)<<bits-1)
		}
		return words
	case k.Type == TypeList && k.rule.oneOf != nil:
		return "a list out of " + strings.Join(k.rule.oneOf, ", ")
	case k.Type == TypeString || k.Type == TypeList:
		return k.rule.words
	}
	return words + ", " + k.rule.words
}
