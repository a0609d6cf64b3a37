// Package memnet is a network in memory, for brokers and clients of one process: hosts with names
// and addresses, listeners, and connections that behave as TCP's do.
//
// Whoever waits on it waits for a channel or a sync.Cond, so that in a bubble of testing/synctest
// time goes on meanwhile. Nothing is lost or reordered. What a test wants to go wrong it does itself: it
// kills what runs on a host (Host.Kill), and cuts, heals or slows down the link that leads from one
// host to another (Network.Link), in one direction or both.
//
//	          Write                Read
//	client ----------> stream ----------> server      a Conn is one end of two streams
//	       <---------- stream <----------
//
// A stream holds windowSize bytes; a writer waits for a reader then. Close and CloseWrite let the
// other end read what is there, and then the end. Kill lets nobody read anything: both ends of all
// connections of a host fail with ECONNRESET. All that one end learns of the other goes over the link:
// while it is cut a connection to a host that was killed is open for all one can see. (Only that somebody
// has read, so that more can be sent, is known without.)
package memnet
