package record_test

import (
	"fmt"

	"github.com/gregor-kafka/gregor/record"
)

// A producer's batch, as it lies in a request, a .log file and an answer.
func ExampleBuilder() {
	b := record.NewBuilder(record.BuilderOptions{Codec: record.Zstd})
	for i, value := range []string{"hello", "world"} {
		err := b.Append(record.Record{Offset: int64(i), Timestamp: 1_700_000_000_000, Value: []byte(value)})
		if err != nil {
			fmt.Println(err)
		}
	}
	batch := record.Batch(b.Build())
	fmt.Println(batch.Count(), "records", batch.Codec(), "epoch", batch.LeaderEpoch())

	// What a broker sets is not covered by the checksum.
	batch.SetBaseOffset(42)
	batch.SetLeaderEpoch(7)
	fmt.Println(batch.BaseOffset(), batch.LastOffset(), batch.LeaderEpoch(), batch.Verify())
	// Output:
	// 2 records zstd epoch -1
	// 42 43 7 <nil>
}

func ExampleBatches() {
	b := record.NewBuilder(record.BuilderOptions{BaseOffset: 100})
	_ = b.Append(record.Record{Offset: 100, Key: []byte("k"), Value: []byte("v"), Headers: []record.Header{{Key: "trace", Value: []byte("1")}}})
	set := b.Build()
	set = append(set, record.EndTxnMarker(record.EndTxn{Type: record.ControlCommit, ProducerID: 9, BaseOffset: 101})...)
	set = append(set, set[:20]...) // a torn tail

	for batch, err := range record.Batches(set) {
		if err == nil {
			err = batch.Verify()
		}
		if err != nil {
			fmt.Println(err)
			break
		}
		for r, err := range batch.Records() {
			if err != nil {
				fmt.Println(err)
				break
			}
			if batch.IsControl() {
				t, _ := record.ParseControl(r.Key)
				fmt.Println(r.Offset, t, "of producer", batch.ProducerID())
				continue
			}
			fmt.Printf("%d %s=%s %v\n", r.Offset, r.Key, r.Value, r.Headers[0].Key)
		}
	}
	// Output:
	// 100 k=v trace
	// 101 COMMIT of producer 9
}

// What Kafka 0.10 wrote.
func ExampleSetBuilder() {
	b, err := record.NewSetBuilder(record.SetOptions{Magic: 1, Codec: record.Gzip})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range int64(3) {
		_ = b.Append(record.Record{Offset: 10 + i, Timestamp: 1_700_000_000_000, Value: []byte{byte('a' + i)}})
	}
	wrapper, _ := record.First(b.Build())
	fmt.Println("magic", wrapper.Magic(), "last offset", wrapper.LastOffset())
	for r := range wrapper.Records() {
		fmt.Println(r.Offset, string(r.Value))
	}
	// Output:
	// magic 1 last offset 12
	// 10 a
	// 11 b
	// 12 c
}
