// Package memnet is a network in memory, for brokers and clients of one process: hosts with names
// and addresses, listeners, and connections that behave as TCP's do.
//
// Whoever waits on it waits for a channel or a sync.Cond, so that in a bubble of testing/synctest
// time goes on meanwhile. Nothing is lost, delayed or reordered; what a test wants to go wrong it
// does itself, with Host.Kill.
//
//	          Write                Read
//	client ----------> stream ----------> server      a Conn is one end of two streams
//	       <---------- stream <----------
//
// A stream holds windowSize bytes; a writer waits for a reader then. Close and CloseWrite let the
// other end read what is there, and then the end. Kill lets nobody read anything: both ends of all
// connections of a host fail with ECONNRESET.
package memnet
