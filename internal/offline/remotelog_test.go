package offline

import (
	"bufio"
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"github.com/gregor-kafka/gregor/record"
)

// remoteLogVectors are bytes that RemoteLogMetadataSerde of Kafka 4.4.0 made, and its text of them.
func remoteLogVectors(t testing.TB) (values [][]byte, texts []string) {
	t.Helper()
	f, err := os.Open("testdata/remote-log-metadata.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		encoded, text, _ := strings.Cut(lines.Text(), "\t")
		value, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		values, texts = append(values, value), append(texts, text)
	}
	if len(values) == 0 {
		t.Fatal("no vector")
	}
	return values, texts
}

func TestRemoteLogMetadataIsShownAsByKafka(t *testing.T) {
	values, texts := remoteLogVectors(t)
	for i, v := range values {
		r := record.Record{Value: v}
		if got, err := RemoteLogMetadataDecoder.value(nil, &r); err != nil || string(got) != texts[i] {
			t.Errorf("got %v\n%s\nwant\n%s", err, got, texts[i])
		}
		for n := range v {
			if _, err := appendRemoteLog(nil, v[:n]); err == nil {
				t.Errorf("%d of %d bytes are enough", n, len(v))
			}
		}
	}
}

func FuzzRemoteLog(f *testing.F) {
	values, _ := remoteLogVectors(f)
	for _, v := range values {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if out, err := appendRemoteLog([]byte("x"), value); out[0] != 'x' || err != nil && len(out) > 1 {
			t.Fatalf("%q, %v", out, err)
		}
	})
}
