package schema

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/gregor-kafka/gregor/internal/offline/files"
	"github.com/gregor-kafka/gregor/internal/offline/offlinetest"
	"github.com/gregor-kafka/gregor/internal/offline/text"
	"github.com/gregor-kafka/gregor/internal/record"
)

// Whatever a decoder makes of bytes is JSON.
func FuzzDecoders(f *testing.F) {
	for _, set := range []string{"kafka-4.4.0-kraft-dynamic", "kafka-4.4.0-crash"} {
		for _, s := range offlinetest.Seeds(f, set, files.LogFile, files.KRaftSnapshot) {
			for b, err := range record.Batches(s) {
				if err != nil {
					break
				}
				for r, err := range b.Records() {
					if err == nil {
						f.Add(bytes.Clone(r.Key), bytes.Clone(r.Value))
					}
				}
			}
		}
	}
	decoders := []Decoder{OffsetsDecoder, TransactionLogDecoder, ShareGroupStateDecoder, ClusterMetadataDecoder}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r := record.Record{Key: key, Value: value}
		for _, d := range decoders {
			for _, decode := range []DecodeFunc{d.Key, d.Value} {
				if out, err := decode(nil, &r); err == nil && len(out) > 0 && !json.Valid(out) {
					t.Fatalf("decoder %d: %s", d, out)
				}
			}
		}
		if out := AppendControlJSON(nil, &r); !json.Valid(out) {
			t.Fatalf("control: %s", out)
		}
		if out := text.AppendString(nil, value); !json.Valid(out) {
			t.Fatalf("string: %s", out)
		}
		AppendControl(nil, &r)
	})
}
