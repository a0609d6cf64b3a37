package api

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/commitlog"
	"github.com/gregor-kafka/gregor/internal/logdir"
	"github.com/gregor-kafka/gregor/internal/topic"
)

// describeLogDirs lists every log directory, offline ones too, with the logs in it that
// are asked for, copies of moves included; no topic asked for means all.
func (s *Server) describeLogDirs(_ context.Context, _ *Request, req *kmsg.DescribeLogDirsRequest) (*kmsg.DescribeLogDirsResponse, error) {
	resp := kmsg.NewPtrDescribeLogDirsResponse()
	wanted := func(topic.Partition) bool { return true }
	if req.Topics != nil {
		asked := make(map[topic.Partition]bool)
		for _, t := range req.Topics {
			for _, number := range t.Partitions {
				asked[topic.Partition{Topic: t.Topic, Partition: number}] = true
			}
		}
		wanted = func(p topic.Partition) bool { return asked[p] }
	}
	for _, d := range s.Logs.Dirs() {
		resp.Dirs = append(resp.Dirs, describedDir(&d, wanted))
	}
	return resp, nil
}

func describedDir(d *logdir.Dir, wanted func(topic.Partition) bool) kmsg.DescribeLogDirsResponseDir {
	answer := kmsg.NewDescribeLogDirsResponseDir()
	answer.Dir = d.Path
	answer.TotalBytes, answer.UsableBytes, answer.IsCordoned = -1, -1, d.Cordoned
	if !d.Online {
		answer.ErrorCode = kerr.KafkaStorageError.Code
		return answer
	}
	if total, free, err := d.Space(); err == nil {
		answer.TotalBytes, answer.UsableBytes = total, free
	}
	lag := make(map[*commitlog.Log]int64, len(d.Futures))
	logs := slices.Clone(d.Logs)
	for _, f := range d.Futures {
		lag[f.Log] = f.Lag
		logs = append(logs, f.Log)
	}
	logs = slices.DeleteFunc(logs, func(l *commitlog.Log) bool { return !wanted(l.Partition()) })
	slices.SortFunc(logs, func(a, b *commitlog.Log) int { return a.Partition().Compare(b.Partition()) })
	for _, l := range logs {
		id := l.Partition()
		if n := len(answer.Topics); n == 0 || answer.Topics[n-1].Topic != id.Topic {
			t := kmsg.NewDescribeLogDirsResponseDirTopic()
			t.Topic = id.Topic
			answer.Topics = append(answer.Topics, t)
		}
		p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		o := l.Offsets()
		p.Partition, p.Size, p.OffsetLag = id.Partition, l.Size(), max(0, o.HighWatermark-o.End)
		if behind, ok := lag[l]; ok {
			p.IsFuture, p.OffsetLag = true, behind
		}
		t := &answer.Topics[len(answer.Topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	return answer
}
