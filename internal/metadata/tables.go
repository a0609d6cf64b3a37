package metadata

import _ "embed"

// FieldTables is the text that the record types are generated from (records.txt has its
// syntax), for tools that show records field by field under Kafka's names.
//
//go:embed records.txt
var FieldTables string
