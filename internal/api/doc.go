// Package api answers Kafka's requests, one file per API key: 00_produce.go, 01_fetch.go
// and so on. It knows the protocol's structs, versions and error codes, and turns requests
// into calls of the packages below, which do not.
//
// # Rules
//
//   - The table in apis.go says which versions are served; ApiVersions reads it, so what is
//     advertised is what is there. (What Kafka answers without listing it is not listed either.)
//   - Produce and Fetch are read and written by hand, without an allocation per partition.
//     Everything else goes through kmsg's structs and the adapter handle.
//   - A handler may block: the connection reads no further meanwhile, as in Kafka. Its
//     context ends with the connection.
//   - A handler's answer carries its errors in the fields the protocol has for them, by
//     code in errors.go. An error that a handler returns closes the connection; that is for
//     requests that cannot be answered, not for those that fail.
package api
