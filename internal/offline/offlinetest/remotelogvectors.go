package offlinetest

import (
	"bufio"
	_ "embed"
	"encoding/base64"
	"strings"
	"testing"
)

//go:embed testdata/remote-log-metadata.txt
var remoteLogText string

// RemoteLogVectors are bytes that RemoteLogMetadataSerde of Kafka 4.4.0 made, and its text of them.
func RemoteLogVectors(t testing.TB) (values [][]byte, texts []string) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(remoteLogText)); lines.Scan(); {
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
