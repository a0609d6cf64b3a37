package config

import (
	"math"
	"strings"
	"testing"
	"time"
)

// Each line as ConfigDef.parseType of Kafka 4.4.0 answers it.
func TestDoublesAreJavas(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		x, ok := parseJavaDouble(text)
		got := "refused"
		if ok {
			got = formatDouble(x)
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"0.5f", "0.5F", "0.5d", "0.5D", " 0.5 ", "\t0.5\n", "0.5\x01", "00.5", ".5", "5.e-1", "+0.5",
		"0x1p-1", "0X1P-1", "0x.8p0", "0x1.p-1", "0x1p-1f"} {
		f(text, "0.5")
	}
	for _, text := range []string{"", " ", "nan", "inf", "INF", "infinity", "1_0", "0.5L", "0.1e", "0.5ff", "0.5 f", "0x1", "0.5.", "0,5",
		"0.5\u00a0", "٣", "++1", "f", ".", "Infinityf"} {
		f(text, "refused")
	}
	f("1.", "1.0")
	f("-0", "-0.0")
	f("1f", "1.0")
	f("1e-1", "0.1")
	f("1e-400", "0.0")
	f("1e400", "Infinity")
	f("-1e400", "-Infinity")
	f("+Infinity", "Infinity")
	f("1e7", "1.0E7")
	f("0.00012345", "1.2345E-4")
	f("4.9E-324", "4.9E-324")
	f("0.30000001192092896", "0.30000001192092896")
	f("NaN", "refused") // Kafka takes it, and it passes every bound
}

func TestWholeNumbersAreJavas(t *testing.T) {
	f := func(text string, bits int, want int64, ok bool) {
		t.Helper()
		got, err := parseWhole(text, bits)
		if (err == nil) != ok || ok && got != want {
			t.Errorf("%q: got %d, %v, want %d, %v", text, got, err, want, ok)
		}
	}
	f(" 10 ", 32, 10, true)
	f("10\x01", 32, 10, true)
	f("+10", 32, 10, true)
	f("-0", 32, 0, true)
	f("010", 32, 10, true)
	f("１０", 32, 10, true) // full width
	f("٣", 64, 3, true)
	f("9223372036854775807", 64, math.MaxInt64, true)
	for _, text := range []string{"", " ", "0x10", "1_000", "1e3", "10L", "10.0", "++1", "+ 1", "10\u00a0", "10\u2003", "2147483648", "½", "Ⅷ", "\U0001d7d8"} {
		f(text, 32, 0, false)
	}
}

func TestEveryDigitOfAScript(t *testing.T) {
	for _, zero := range []rune{'٠', '۰', '߀', '०', '০', '๐', '༠', '၀', '០', '᠐', '᪀', '᪐', '꩐', '０'} {
		for i := range rune(10) {
			if got := asciiDigit(zero + i); got != '0'+i {
				t.Errorf("%c: got %c, want %d", zero+i, got, i)
			}
		}
	}
}

// What a duration cannot hold is the longest there is, not one that has wrapped around.
func TestMilliseconds(t *testing.T) {
	f := func(ms string, want time.Duration) {
		t.Helper()
		b, _, err := Parse(strings.NewReader("connections.max.idle.ms="+ms+"\n"), "test", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Milliseconds("connections.max.idle.ms"); got != want {
			t.Errorf("%s: got %v, want %v", ms, got, want)
		}
	}
	f("600000", 10*time.Minute)
	f("-1", -time.Millisecond)
	f("9223372036854", 9223372036854*time.Millisecond)
	f("9223372036855", Never)
	f("9223372036854775807", Never)
	f("-9223372036854775808", -9223372036854*time.Millisecond)
}
