package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gregor-kafka/gregor/internal/client"
)

func topicsCommand() *cobra.Command {
	var brokers []string
	cmd := &cobra.Command{Use: "topics", Short: "List, create, delete, describe, alter, compact and repair topics"}
	brokersFlag(cmd, &brokers)
	with := func(cmd *cobra.Command, do func(*client.Topics) error) error {
		t, err := client.NewTopics(cmd.Context(), brokers, cmd.OutOrStdout())
		if err != nil {
			return err
		}
		defer t.Close()
		return do(t)
	}
	cmd.AddCommand(topicsList(with), topicsCreate(with), topicsDelete(with), topicsDescribe(with), topicsAlter(with), topicsClean(), topicsDecide())
	return cmd
}

type withTopics func(*cobra.Command, func(*client.Topics) error) error

func topicsList(with withTopics) *cobra.Command {
	var internal bool
	cmd := &cobra.Command{
		Use: "list", Short: "List topic names", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(t *client.Topics) error { return t.List(cmd.Context(), internal) })
		},
	}
	cmd.Flags().BoolVar(&internal, "internal", false, "also the broker's own topics")
	return cmd
}

func topicsCreate(with withTopics) *cobra.Command {
	var o client.CreateOptions
	var configs []string
	cmd := &cobra.Command{
		Use: "create TOPIC...", Short: "Create topics", Args: cobra.MinimumNArgs(1),
		Example: "  gregor topics create orders --partitions 6 --config retention.ms=86400000",
		RunE: func(cmd *cobra.Command, names []string) error {
			set, err := keyValues(configs)
			if err != nil {
				return err
			}
			o.Configs = map[string]*string{}
			for k, v := range set {
				o.Configs[k] = &v
			}
			return with(cmd, func(t *client.Topics) error { return t.Create(cmd.Context(), o, names...) })
		},
	}
	f := cmd.Flags()
	f.Int32VarP(&o.Partitions, "partitions", "p", -1, "number of partitions (-1: the broker's num.partitions)")
	f.Int16VarP(&o.ReplicationFactor, "replication-factor", "r", -1, "copies of each partition (-1: the broker's default.replication.factor)")
	f.StringArrayVarP(&configs, "config", "c", nil, "topic config key=value, may be repeated")
	f.BoolVar(&o.IfNotExists, "if-not-exists", false, "a topic that is there already is no error")
	return cmd
}

func topicsDelete(with withTopics) *cobra.Command {
	return &cobra.Command{
		Use: "delete TOPIC...", Short: "Delete topics and their data", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			return with(cmd, func(t *client.Topics) error { return t.Delete(cmd.Context(), names...) })
		},
	}
}

func topicsDescribe(with withTopics) *cobra.Command {
	return &cobra.Command{
		Use: "describe [TOPIC...]", Short: "Show partitions, offsets and the configs that are set",
		RunE: func(cmd *cobra.Command, names []string) error {
			return with(cmd, func(t *client.Topics) error { return t.Describe(cmd.Context(), names...) })
		},
	}
}

func topicsAlter(with withTopics) *cobra.Command {
	var o client.AlterOptions
	var configs []string
	cmd := &cobra.Command{
		Use: "alter TOPIC", Short: "Add partitions, set or delete configs", Args: cobra.ExactArgs(1),
		Example: "  gregor topics alter orders --partitions 12 --config retention.ms=3600000 --delete-config segment.bytes",
		RunE: func(cmd *cobra.Command, names []string) (err error) {
			if o.SetConfigs, err = keyValues(configs); err != nil {
				return err
			}
			if o.Partitions == 0 && len(o.SetConfigs)+len(o.DeleteConfigs) == 0 {
				return fmt.Errorf("nothing to change: give --partitions, --config or --delete-config")
			}
			return with(cmd, func(t *client.Topics) error { return t.Alter(cmd.Context(), names[0], o) })
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.Partitions, "partitions", "p", 0, "new number of partitions, larger than now")
	f.StringArrayVarP(&configs, "config", "c", nil, "topic config key=value to set, may be repeated")
	f.StringArrayVar(&o.DeleteConfigs, "delete-config", nil, "topic config to fall back to its default, may be repeated")
	return cmd
}

func keyValues(list []string) (map[string]string, error) {
	m := map[string]string{}
	for _, kv := range list {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("config %q: want key=value", kv)
		}
		m[k] = v
	}
	return m, nil
}
