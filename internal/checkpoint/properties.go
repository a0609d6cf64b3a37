package checkpoint

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// appendProperty writes "key=value" as java.util.Properties.store does. The key has no
// character that needs an escape.
func appendProperty(b []byte, key, value string) []byte {
	b = append(append(b, key...), '=')
	for i, c := range utf16.Encode([]rune(value)) {
		switch {
		case c == ' ' && i == 0:
			b = append(b, '\\', ' ')
		case c == '\t':
			b = append(b, '\\', 't')
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\f':
			b = append(b, '\\', 'f')
		case strings.ContainsRune(`\=:#!`, rune(c)):
			b = append(b, '\\', byte(c))
		case c < ' ' || c > '~':
			b = fmt.Appendf(b, `\u%04X`, c)
		default:
			b = append(b, byte(c))
		}
	}
	return append(b, '\n')
}
