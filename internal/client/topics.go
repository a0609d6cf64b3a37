package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gregor-kafka/gregor/internal/uuid"
)

// Topics lists, makes, changes and deletes topics.
type Topics struct {
	client *kgo.Client
	admin  *kadm.Client
	out    io.Writer
}

// NewTopics connects to a cluster; what it reports goes to out. The caller closes it.
func NewTopics(ctx context.Context, brokers []string, out io.Writer) (*Topics, error) {
	client, err := connect(ctx, brokers)
	if err != nil {
		return nil, err
	}
	return &Topics{client: client, admin: kadm.NewClient(client), out: out}, nil
}

// Close ends the connections.
func (t *Topics) Close() { t.client.Close() }

// List writes topic names, one a line, sorted.
func (t *Topics) List(ctx context.Context, internal bool) error {
	list := t.admin.ListTopics
	if internal {
		list = t.admin.ListTopicsWithInternal
	}
	details, err := list(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(details)) {
		fmt.Fprintln(t.out, name)
	}
	return nil
}

// CreateOptions describe new topics; -1 partitions or replicas mean the broker's default.
type CreateOptions struct {
	Partitions        int32
	ReplicationFactor int16
	Configs           map[string]*string
	IfNotExists       bool
}

// Create makes topics and reports each; the error joins those of all that failed.
func (t *Topics) Create(ctx context.Context, o CreateOptions, names ...string) error {
	responses, err := t.admin.CreateTopics(ctx, o.Partitions, o.ReplicationFactor, o.Configs, names...)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range responses.Sorted() {
		switch {
		case r.Err == nil:
			fmt.Fprintf(t.out, "created %s with %d partitions\n", r.Topic, r.NumPartitions)
		case o.IfNotExists && errors.Is(r.Err, kerr.TopicAlreadyExists):
			fmt.Fprintf(t.out, "%s is there already\n", r.Topic)
		default:
			errs = append(errs, explain(r.Topic, r.Err, r.ErrMessage))
		}
	}
	return errors.Join(errs...)
}

// Delete deletes topics and reports each.
func (t *Topics) Delete(ctx context.Context, names ...string) error {
	responses, err := t.admin.DeleteTopics(ctx, names...)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range responses.Sorted() {
		if r.Err != nil {
			errs = append(errs, explain(r.Topic, r.Err, r.ErrMessage))
			continue
		}
		fmt.Fprintf(t.out, "deleted %s\n", r.Topic)
	}
	return errors.Join(errs...)
}

// AlterOptions change a topic: a larger number of partitions (0: unchanged), configs to
// set and configs to fall back to their default.
type AlterOptions struct {
	Partitions    int
	SetConfigs    map[string]string
	DeleteConfigs []string
}

// Alter changes a topic.
func (t *Topics) Alter(ctx context.Context, name string, o AlterOptions) error {
	if o.Partitions > 0 {
		responses, err := t.admin.UpdatePartitions(ctx, o.Partitions, name)
		if err != nil {
			return err
		}
		if r := responses[name]; r.Err != nil {
			return explain(name, r.Err, r.ErrMessage)
		}
		fmt.Fprintf(t.out, "%s now has %d partitions\n", name, o.Partitions)
	}
	if len(o.SetConfigs)+len(o.DeleteConfigs) == 0 {
		return nil
	}
	return t.alterConfigs(ctx, name, o)
}

func (t *Topics) alterConfigs(ctx context.Context, name string, o AlterOptions) error {
	var changes []kadm.AlterConfig
	for _, k := range slices.Sorted(maps.Keys(o.SetConfigs)) {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: k, Value: kmsg.StringPtr(o.SetConfigs[k])})
	}
	for _, k := range o.DeleteConfigs {
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: k})
	}
	responses, err := t.admin.AlterTopicConfigs(ctx, changes, name)
	if err != nil {
		return err
	}
	for _, r := range responses {
		if r.Err != nil {
			return explain(name, r.Err, r.ErrMessage)
		}
	}
	fmt.Fprintf(t.out, "changed %d configs of %s\n", len(changes), name)
	return nil
}

// Describe writes the partitions and the configs set on topics; all of them without names.
func (t *Topics) Describe(ctx context.Context, names ...string) error {
	details, err := t.admin.ListTopics(ctx, names...)
	if err != nil {
		return err
	}
	configs, err := t.configs(ctx, details)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range details.Sorted() {
		if d.Err != nil {
			errs = append(errs, explain(d.Topic, d.Err, ""))
			continue
		}
		t.describeOne(ctx, d, configs[d.Topic])
	}
	return errors.Join(errs...)
}

// configs returns the configs that are set on each topic itself, as "key=value".
func (t *Topics) configs(ctx context.Context, details kadm.TopicDetails) (map[string][]string, error) {
	set := map[string][]string{}
	var names []string
	for name, d := range details {
		if d.Err == nil {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return set, nil
	}
	resources, err := t.admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil, err
	}
	for _, r := range resources {
		for _, c := range r.Configs {
			if c.Source == kmsg.ConfigSourceDynamicTopicConfig {
				set[r.Name] = append(set[r.Name], c.Key+"="+c.MaybeValue())
			}
		}
		slices.Sort(set[r.Name])
	}
	return set, nil
}

func (t *Topics) describeOne(ctx context.Context, d kadm.TopicDetail, configs []string) {
	fmt.Fprintf(t.out, "%s  id %s, %d partitions, replication factor %d", d.Topic, uuid.UUID(d.ID), len(d.Partitions), d.Partitions.NumReplicas())
	if len(configs) > 0 {
		fmt.Fprintf(t.out, ", %s", strings.Join(configs, " "))
	}
	fmt.Fprintln(t.out)
	starts, _ := t.admin.ListStartOffsets(ctx, d.Topic) // offsets are an extra: a leaderless partition shows none
	ends, _ := t.admin.ListEndOffsets(ctx, d.Topic)
	table := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  PARTITION\tLEADER\tEPOCH\tREPLICAS\tISR\tSTART\tEND")
	for _, p := range d.Partitions.Sorted() {
		fmt.Fprintf(table, "  %d\t%d\t%d\t%v\t%v\t%s\t%s\n", p.Partition, p.Leader, p.LeaderEpoch, p.Replicas, p.ISR,
			offsetText(starts, p), offsetText(ends, p))
	}
	table.Flush()
}

func offsetText(l kadm.ListedOffsets, p kadm.PartitionDetail) string {
	o, ok := l.Lookup(p.Topic, p.Partition)
	if !ok || o.Err != nil {
		return "?"
	}
	return fmt.Sprint(o.Offset)
}

func explain(topic string, err error, message string) error {
	if message == "" {
		return fmt.Errorf("topic %s: %w", topic, err)
	}
	return fmt.Errorf("topic %s: %w: %s", topic, err, message)
}
