package schema

import (
	"testing"

	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/record"
)

func TestRemoteLogMetadataIsShownAsByKafka(t *testing.T) {
	values, texts := offlinetest.RemoteLogVectors(t)
	for i, v := range values {
		r := record.Record{Value: v}
		if got, err := RemoteLogMetadataDecoder.Value(nil, &r); err != nil || string(got) != texts[i] {
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
	values, _ := offlinetest.RemoteLogVectors(f)
	for _, v := range values {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if out, err := appendRemoteLog([]byte("x"), value); out[0] != 'x' || err != nil && len(out) > 1 {
			t.Fatalf("%q, %v", out, err)
		}
	})
}
