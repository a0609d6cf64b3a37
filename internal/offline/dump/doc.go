// Package dump writes down what the files of a log directory say, with no broker. It opens files for
// reading only, takes no lock and changes nothing, so it may run beside a broker. In Kafka this tool is
// DumpLogSegments.
//
// The text is that of kafka-dump-log, options included. As JSON there is one object a record,
// with the fields that `gregor consume --json` and the golden sets have:
//
//	{"topic":"t","partition":0,"offset":7,"timestamp":1700000000000,"timestampType":"CreateTime",
//	 "leaderEpoch":0,"key":"azE=","value":null,"headers":[["name","dg=="]]}
//
// plus "control" in a control record, and "decoded" when a decoder was asked for. Of a
// directory it shows the records from the log start on, as a consumer sees them; of a file all.
package dump
