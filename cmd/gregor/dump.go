package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gregor-kafka/gregor/internal/offline/dump"
	"github.com/gregor-kafka/gregor/internal/offline/schema"
)

func dumpCommand() *cobra.Command {
	var o dump.Options
	var files []string
	var decoders decoderFlags
	var keyClass, valueClass string
	cmd := &cobra.Command{
		Use:   "dump FILE|DIR...",
		Short: "Show what is in the files of a log directory, without a broker",
		Long: `Show what is in the files of a log directory: segments of all formats, indexes, snapshots,
checkpoints, the metadata log and internal topics. Takes single files, partitions and whole log
directories; needs no broker, takes no lock and never writes. The options are those of
kafka-dump-log, and so is the text. With --json there is one object a record; of a directory
those from the log start on, of a file all.

The exit code is 1 if there was something that could not be shown, and 2 if the command was called
in a wrong way or could not read everything.`,
		Example: `  gregor dump orders-0/00000000000000000000.log --print-data-log
  gregor dump gregor-data/orders-0 --json | jq -r '.key | @base64d'
  gregor dump gregor-data/__consumer_offsets-3 --print-data-log
  gregor dump 00000000000000000000.index 00000000000000004200.snapshot`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			args = append(args, files...)
			if len(args) == 0 {
				return notDoneError{errors.New("name files or directories")}
			}
			if o.KeyClass, err = class("key", keyClass); err != nil {
				return notDoneError{err}
			}
			if o.ValueClass, err = class("value", valueClass); err != nil {
				return notDoneError{err}
			}
			if o.Decoder, err = decoders.decoder(); err != nil {
				return notDoneError{err}
			}
			o.PrintDataLog = o.PrintDataLog || o.Decoder != schema.AutoDecoder
			o.Warnings = cmd.ErrOrStderr()
			if err = dump.Files(cmd.Context(), cmd.OutOrStdout(), args, o); err != nil && !errors.Is(err, dump.ErrDamaged) {
				return notDoneError{err}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&files, "files", nil, "files or directories, as arguments or here, separated by commas")
	f.BoolVar(&o.JSON, "json", false, "one JSON object a record, keys, values and header values in base64")
	f.BoolVar(&o.PrintDataLog, "print-data-log", false, "keys and values of records; those of internal topics decoded")
	f.BoolVar(&o.DeepIteration, "deep-iteration", false, "a line for each record")
	f.BoolVar(&o.SkipRecordMetadata, "skip-record-metadata", false, "of a record only key and value")
	f.IntVar(&o.MaxMessageSize, "max-message-size", 0, "of an index, largest batch in bytes that an entry may lead to (0: any)")
	f.Int64Var(&o.MaxBytes, "max-bytes", 0, "read only so many bytes of a segment (0: all)")
	f.BoolVar(&o.IndexSanityCheck, "index-sanity-check", false, "of indexes only whether they make sense by themselves")
	f.BoolVar(&o.VerifyIndexOnly, "verify-index-only", false, "of indexes only the entries that their log contradicts")
	decoders.add(cmd)
	f.StringVar(&keyClass, "key-decoder-class", stringDecoder, "how keys are shown: one of Kafka's decoders for strings, integers and longs")
	f.StringVar(&valueClass, "value-decoder-class", stringDecoder, "how values are shown, likewise")
	return cmd
}

// Kafka's decoders of keys and values. Others are classes of Java, which gregor cannot run.
const (
	decoderPackage = "org.apache.kafka.tools.api."
	stringDecoder  = decoderPackage + "StringDecoder"
)

func class(what, name string) (schema.Class, error) {
	switch short := strings.TrimPrefix(strings.TrimPrefix(name, decoderPackage), "kafka.serializer."); short {
	case "StringDecoder", "":
		return schema.StringClass, nil
	case "IntegerDecoder":
		return schema.IntegerClass, nil
	case "LongDecoder":
		return schema.LongClass, nil
	}
	return 0, fmt.Errorf("--%s-decoder-class %s: gregor cannot run Java classes; it knows StringDecoder, IntegerDecoder and LongDecoder "+
		"of %s, and --json has all bytes, in base64", what, name, strings.TrimSuffix(decoderPackage, "."))
}

// decoderFlags choose a decoder; without one, text output takes the one of the topic.
type decoderFlags [5]bool

var decoderNames = [...]struct {
	name    string
	decoder schema.Decoder
	help    string
}{
	{"offsets-decoder", schema.OffsetsDecoder, "decode records as those of __consumer_offsets"},
	{"transaction-log-decoder", schema.TransactionLogDecoder, "decode records as those of __transaction_state"},
	{"share-group-state-decoder", schema.ShareGroupStateDecoder, "decode records as those of __share_group_state"},
	{"cluster-metadata-decoder", schema.ClusterMetadataDecoder, "decode records as those of __cluster_metadata"},
	{"remote-log-metadata-decoder", schema.RemoteLogMetadataDecoder, "decode records as those of __remote_log_metadata"},
}

func (d *decoderFlags) add(cmd *cobra.Command) {
	for i, n := range decoderNames {
		cmd.Flags().BoolVar(&d[i], n.name, false, n.help)
	}
}

func (d *decoderFlags) decoder() (schema.Decoder, error) {
	chosen := schema.AutoDecoder
	for i, n := range decoderNames {
		if !d[i] {
			continue
		}
		if chosen != schema.AutoDecoder {
			return chosen, fmt.Errorf("--%s: only one decoder at a time", n.name)
		}
		chosen = n.decoder
	}
	return chosen, nil
}
