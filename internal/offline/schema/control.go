package schema

import (
	"github.com/gregor-kafka/gregor/internal/offline/text"
	"github.com/gregor-kafka/gregor/internal/record"
)

// controlSchemas are the values of the control records of the metadata log, with the words
// that kafka-dump-log puts in front.
var controlSchemas = map[record.ControlType]struct{ label, schema string }{
	record.ControlLeaderChange:   {"LeaderChange:", "LeaderChangeMessage"},
	record.ControlSnapshotHeader: {"SnapshotHeader", "SnapshotHeaderRecord"},
	record.ControlSnapshotFooter: {"SnapshotFooter", "SnapshotFooterRecord"},
	record.ControlKRaftVersion:   {"KRaftVersion", "KRaftVersionRecord"},
	record.ControlKRaftVoters:    {"KRaftVoters", "VotersRecord"},
}

// AppendControl appends the text for a control record.
func AppendControl(dst []byte, r *record.Record) ([]byte, error) {
	t, err := record.ParseControl(r.Key)
	if err != nil {
		return dst, err
	}
	if t == record.ControlAbort || t == record.ControlCommit {
		name := "COMMIT"
		if t == record.ControlAbort {
			name = "ABORT"
		}
		epoch, err := record.ParseEndTxn(r.Value)
		dst = append(append(append(dst, "endTxnMarker: "...), name...), " coordinatorEpoch: "...)
		return text.AppendInt(dst, int64(epoch)), err
	}
	c, ok := controlSchemas[t]
	if !ok {
		return append(text.AppendInt(append(dst, "controlType: UNKNOWN("...), int64(t)), ')'), nil
	}
	dst = append(append(dst, c.label...), ' ')
	return appendControlValue(dst, c.schema, r.Value)
}

func appendControlValue(dst []byte, name string, value []byte) ([]byte, error) {
	s := tables().data[name]
	version, _, err := cutVersion(value)
	if err != nil {
		return dst, err
	}
	return appendRecord(dst, s, value, min(version, s.Max))
}

// AppendControlJSON appends what a control record says: its type, and its fields. What
// cannot be decoded is left out; key and value are there anyway.
func AppendControlJSON(dst []byte, r *record.Record) []byte {
	t, err := record.ParseControl(r.Key)
	if err != nil {
		return append(dst, `{"type":"UNKNOWN"}`...)
	}
	dst = text.AppendString(append(dst, `{"type":`...), []byte(t.String()))
	n := len(dst)
	if t == record.ControlAbort || t == record.ControlCommit {
		if epoch, err := record.ParseEndTxn(r.Value); err == nil {
			dst = text.AppendInt(append(dst, `,"coordinatorEpoch":`...), int64(epoch))
		}
	} else if c, ok := controlSchemas[t]; ok {
		if dst, err = appendControlValue(append(dst, `,"data":`...), c.schema, r.Value); err != nil {
			dst = dst[:n]
		}
	}
	return append(dst, '}')
}
