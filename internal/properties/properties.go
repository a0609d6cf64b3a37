// Package properties reads Java's .properties syntax (java.util.Properties.load), the
// syntax of server.properties, and says on which line each property stands.
//
//	key=value        "=", ":" or blanks end the key; blanks around them are dropped
//	a.list=one,\     a backslash at the end joins the next line,
//	       two       whose blanks in front are dropped
//	# or !           begin a comment when they are the first character of a line
//	\t \n \r \f \uXXXX, and a backslash before any other character means that character
//
// Bytes are ISO-8859-1, as Java reads them: text beyond that needs \u escapes.
package properties

import (
	"fmt"
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
)

// A Property is one setting. Line counts from 1 and is where the setting begins.
type Property struct {
	Key, Value string
	Line       int
}

// A SyntaxError says on which line the text stops making sense.
type SyntaxError struct {
	Line   int
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Reason) }

const blanks = " \t\f"

// Parse yields the properties of data in the order they stand, repeated keys included
// (the last one counts). It stops after the first *SyntaxError.
func Parse(data []byte) iter.Seq2[Property, error] {
	return func(yield func(Property, error) bool) {
		for number, line := range logicalLines(string(data)) {
			p, err := parseLine(line)
			p.Line = number
			if err != nil {
				yield(p, &SyntaxError{number, err.Error()})
				return
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// logicalLines yields the lines that hold a property, continued ones joined, with the
// number of their first line and no blanks in front. Escapes are still in place.
func logicalLines(text string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		var joined strings.Builder
		first := 0 // line on which joined begins; 0 = nothing is being joined
		number := 0
		for line := range naturalLines(text) {
			number++
			line = strings.TrimLeft(line, blanks)
			if first == 0 {
				if line == "" || line[0] == '#' || line[0] == '!' {
					continue
				}
				first = number
			}
			if isContinued(line) {
				joined.WriteString(line[:len(line)-1])
				continue
			}
			joined.WriteString(line)
			if joined.Len() > 0 && !yield(first, joined.String()) {
				return
			}
			joined.Reset()
			first = 0
		}
		if joined.Len() > 0 {
			yield(first, joined.String())
		}
	}
}

// naturalLines splits at \n, \r and \r\n.
func naturalLines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			end := strings.IndexAny(text, "\r\n")
			if end < 0 {
				yield(text)
				return
			}
			if !yield(text[:end]) {
				return
			}
			if strings.HasPrefix(text[end:], "\r\n") {
				end++
			}
			text = text[end+1:]
		}
	}
}

// isContinued reports whether line ends in an odd number of backslashes.
func isContinued(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

func parseLine(line string) (p Property, err error) {
	end := keyEnd(line)
	rest := strings.TrimLeft(line[end:], blanks)
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = strings.TrimLeft(rest[1:], blanks)
	}
	if p.Key, err = unescape(line[:end]); err != nil {
		return p, err
	}
	p.Value, err = unescape(rest)
	return p, err
}

// keyEnd is the index of the first separator that no backslash protects.
func keyEnd(line string) int {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '=', ':', ' ', '\t', '\f':
			return i
		}
	}
	return len(line)
}

var escapes = map[byte]uint16{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f'}

func unescape(s string) (string, error) {
	chars := make([]uint16, 0, len(s)) // UTF-16, because \u may give half a character
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			chars = append(chars, uint16(s[i]))
			continue
		}
		i++
		if i == len(s) {
			break
		}
		c, known := escapes[s[i]]
		switch {
		case s[i] == 'u':
			code, err := strconv.ParseUint(s[i+1:min(i+5, len(s))], 16, 16)
			if err != nil || len(s) < i+5 {
				return "", fmt.Errorf(`%q: \u needs four hexadecimal digits`, s)
			}
			c = uint16(code)
			i += 4
		case !known:
			c = uint16(s[i])
		}
		chars = append(chars, c)
	}
	return string(utf16.Decode(chars)), nil
}
