package metadata

import (
	"slices"
	"testing"
)

// Nothing is no record.
func TestSnapshotOfNothing(t *testing.T) {
	if got := snapshotOf(NewImage("c")); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// metadata.version comes first, whatever the other names are: it says how to read what follows.
func TestSnapshotFeatures(t *testing.T) {
	img := NewImage("c")
	for _, name := range []string{"a.version", "kraft.version", MetadataVersion, "zz.version"} {
		img, _ = mustApply(t, img, &FeatureLevelRecord{Name: name, FeatureLevel: 1})
	}
	var got []string
	for r := range img.Records() {
		got = append(got, r.(*FeatureLevelRecord).Name)
	}
	if want := []string{MetadataVersion, "a.version", "kraft.version", "zz.version"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Lists of eligible leader replicas that have become empty are left out, others not.
func TestSnapshotELR(t *testing.T) {
	img, _ := mustApply(t, NewImage("c"), newTopic("a", 1, 1)...)
	f := func(elr, lastKnown, wantELR, wantLastKnown []int32) {
		t.Helper()
		change := NewPartitionChangeRecord()
		change.TopicID, change.PartitionID, change.EligibleLeaderReplicas, change.LastKnownELR = id(1), 0, elr, lastKnown
		after, _ := mustApply(t, img, change)
		r := after.Topic("a").Partitions[0].record(id(1), 0)
		same := func(a, b []int32) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }
		if !same(r.EligibleLeaderReplicas, wantELR) || !same(r.LastKnownELR, wantLastKnown) {
			t.Errorf("ELR %v, last known %v: got %v and %v", elr, lastKnown, r.EligibleLeaderReplicas, r.LastKnownELR)
		}
	}
	f(nil, nil, nil, nil)
	f([]int32{}, []int32{}, nil, nil)
	f([]int32{2}, []int32{}, []int32{2}, nil)
	f([]int32{}, []int32{3}, nil, []int32{3})
}

// A value that changes in place is a difference.
func TestDiffOfValues(t *testing.T) {
	records := func(n byte) []Record {
		return []Record{
			&FeatureLevelRecord{Name: "f", FeatureLevel: 1 + int16(n)}, &ProducerIdsRecord{NextProducerID: 5 + int64(n)},
			&AccessControlEntryRecord{ID: id(1), Operation: int8(n)}, &UserScramCredentialRecord{Name: "u", Salt: []byte{n}},
			&DelegationTokenRecord{TokenID: "t", IssueTimestamp: int64(n)}, &ClientQuotaRecord{Key: "k", Value: float64(n)},
		}
	}
	before, _ := mustApply(t, NewImage("c"), records(1)...)
	again, _ := mustApply(t, NewImage("c"), records(1)...)
	after, _ := mustApply(t, NewImage("c"), records(2)...)
	for kind, differs := range kinds(Diff(before, after)) {
		if !differs {
			t.Errorf("no change of %s", kind)
		}
	}
	for kind, differs := range kinds(Diff(before, again)) {
		if differs {
			t.Errorf("a change of %s, which are the same", kind)
		}
	}
}
