package checkpoint

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"strconv"

	"github.com/gregor-kafka/gregor/vfs"
)

// UnknownBrokerEpoch stands where a marker has none: an old Kafka wrote it.
const UnknownBrokerEpoch = -1

// TakeCleanShutdown reads the marker at path and removes it for good: when it returns,
// a crash finds none. Only the marker's existence counts; content that makes no sense
// gives UnknownBrokerEpoch. The caller loads logs afterwards, never before.
func TakeCleanShutdown(fsys vfs.FS, path, dir string) (clean bool, brokerEpoch int64, err error) {
	data, err := vfs.ReadFile(fsys, path, math.MaxUint16)
	if errors.Is(err, fs.ErrNotExist) {
		return false, UnknownBrokerEpoch, nil
	}
	if err != nil {
		return false, UnknownBrokerEpoch, err
	}
	if err := fsys.Remove(path); err != nil {
		return false, UnknownBrokerEpoch, err
	}
	if err := fsys.SyncDir(dir); err != nil {
		return false, UnknownBrokerEpoch, err
	}
	return true, parseCleanShutdown(data), nil
}

func parseCleanShutdown(data []byte) (brokerEpoch int64) {
	marker := struct {
		BrokerEpoch int64 `json:"brokerEpoch"`
	}{UnknownBrokerEpoch}
	if json.Unmarshal(data, &marker) != nil {
		return UnknownBrokerEpoch
	}
	return marker.BrokerEpoch
}

// WriteCleanShutdown leaves the marker: every log of the directory is flushed and closed.
func WriteCleanShutdown(fsys vfs.FS, path string, brokerEpoch int64) error {
	return vfs.WriteFileAtomic(fsys, path, appendCleanShutdown(nil, brokerEpoch))
}

func appendCleanShutdown(b []byte, brokerEpoch int64) []byte {
	b = append(b, `{"version":0,"brokerEpoch":`...)
	return append(strconv.AppendInt(b, brokerEpoch, 10), '}')
}
