package properties

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(text string) (got []Property, err error) {
	for p, err := range Parse([]byte(text)) {
		if err != nil {
			return got, err
		}
		got = append(got, p)
	}
	return got, nil
}

func TestParse(t *testing.T) {
	f := func(text string, want ...Property) {
		t.Helper()
		got, err := parse(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	f("")
	f("# only\n! comments\n\n  \t\n")
	f("a=b", Property{"a", "b", 1})
	f("a : b \r\nc\td", Property{"a", "b ", 1}, Property{"c", "d", 2})
	f("a=b=c:d", Property{"a", "b=c:d", 1})
	f("a", Property{"a", "", 1})
	f("=b", Property{"", "b", 1})
	f("#c\\\na=1", Property{"a", "1", 2}) // a comment is never continued
	f("list=one,\\\n   two,\\\r\n\tthree\nnext=1", Property{"list", "one,two,three", 1}, Property{"next", "1", 4})
	f("a=\\\n# part of the value", Property{"a", "# part of the value", 1})
	f(`a\=b\:c\ d=e`, Property{"a=b:c d", "e", 1})
	f(`path=C:\\tmp\\`, Property{"path", `C:\tmp\`, 1})
	f(`a=\t\n\r\f\q\u0041\ud83d\ude00`, Property{"a", "\t\n\r\fqA\U0001F600", 1})
	f("a=\xe9", Property{"a", "é", 1})
	f("a=1\na=2", Property{"a", "1", 1}, Property{"a", "2", 2})
	f("a=b\\", Property{"a", "b", 1})
	f("\\\n\\\n", []Property(nil)...)
}

func TestParseSyntaxError(t *testing.T) {
	for _, text := range []string{"ok=1\n\nbad=\\u12", "ok=1\n\n\\uzzzz=1"} {
		got, err := parse(text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Line != 3 || len(got) != 1 {
			t.Errorf("%q: got %v, %v, want one property and an error on line 3", text, got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a=b", "a:\\\n b\n#c", `\u0041=\`, "\r\n\f"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		line := 0
		for p, err := range Parse(data) {
			if p.Line <= line {
				t.Fatalf("line %d after line %d", p.Line, line)
			}
			line = p.Line
			if err != nil {
				return
			}
		}
	})
}
