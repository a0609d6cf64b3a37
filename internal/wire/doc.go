// Package wire speaks Kafka's framing: listeners, connections, request and response
// headers. What is inside a body is api's business.
//
// # Frames
//
//	request   size int32 | key int16 | version int16 | correlation int32 | client id | tags | body
//	response  size int32 | correlation int32 | tags | body
//
// The size counts the bytes after itself. The client id is a nullable string with an int16
// length in every version. Tags are there when the version of the body is flexible; the
// response header of ApiVersions never has them.
//
// # A connection
//
// One goroutine reads a frame, calls the Handler and writes the answer, so answers leave in
// the order of the requests without a queue.
//
//   - A read buffer is borrowed while bytes are there and given back when the connection
//     waits for the next request: an idle connection holds a goroutine and no buffer.
//     Frames that fit are handled in place; larger ones are read into a buffer of their own
//     that counts against Config.BufferBytes.
//   - Answers to a client that pipelines gather in one buffer until the socket has no
//     further request ready, or the handler is about to wait, or the buffer is long. Others
//     get theirs before the next read.
//   - A stretch of a file (Response.AppendSlice) of at least 64 KiB is sent by sendfile,
//     between the bytes around it. A shorter one is read right behind them. What has to be
//     made first, piece by piece, is a Body (Response.AppendBody).
//   - An answer that must wait for the disk or for followers (Response.Defer) goes to a
//     second goroutine, started at the first such answer, while the first one reads on.
//     Answers that follow queue up behind it. For a client that never sends the next request
//     before it has the answer, the first goroutine waits itself.
//
// # Bounds
//
// Connections, connections per address, the size of a frame, the bytes of all frames being
// read or handled, deferred answers per connection, idle time. A broken frame or header
// closes its connection and nothing else.
package wire
