// Package web serves HTTP: metrics for Prometheus, health, and what `gregor explain` and
// its like ask of a running broker.
//
//	/metrics   text format of Prometheus: Kafka's names as JMX exporters write them, and ours
//	/health    200 when the broker serves, 503 with the reason when it does not
//	...        JSON, added by Server.Handle
//
// # Two ways in
//
//	gregor.sock            in the first log directory, always there, mode 0600: everything
//	gregor.http.listener   TCP, off by default: GET only
//
// Both open before logs are loaded, so that the progress of a long recovery can be seen,
// and close last. The file system decides who may administer: there is no password, and
// nothing that changes the broker on TCP.
package web
