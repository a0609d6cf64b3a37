// Package vfs has the few file operations that a log directory needs: on the real file
// system (OS), and in memory with an exact model of what a crash may do (Mem).
//
// # Rules
//
//   - Paths are those of the host (package path/filepath). Errors are *fs.PathError or
//     *os.LinkError, so errors.Is(err, fs.ErrNotExist) and its like work on both.
//   - A File has no position of its own: every read and write names its offset, so one
//     File serves any number of goroutines.
//   - WriteAt writes all bytes or returns an error; bytes before the error may be written.
//   - File.Sync makes the bytes and the size of a file durable. It says nothing about the
//     name of the file.
//   - A name that was created, renamed or removed is durable after SyncDir of the
//     directory it is in. A new directory needs SyncDir of its parent.
//   - Rename is atomic: after a crash there is the old state or the new one.
//
// The suite in vfs/vfstest holds both file systems to these rules.
//
// # What the end of a process does to Mem
//
// Mem.Kill: the next process finds all that was written. What was not synced still is not: a crash
// later may take it.
//
// # What a crash does to Mem
//
// Each file keeps, next to its bytes as programs see them, the bytes as they were at the last
// Sync and the writes since; each directory keeps the entries of its last SyncDir and the
// changes since:
//
//	now      [ a a a a B B B C C ]     what ReadAt returns
//	synced   [ a a a a a a ]           what is certain
//	pending  write B at 4, write C at 7
//
//	Mem.CrashClone: synced + any part of pending, in any order:
//	         [ a a a a a a ]  [ a a a a B B B ]  [ a a a a a a 0 C C ]  [ a a a a B a 0 0 0 ] ...
//
// A pending write is kept, dropped or torn: cut at any byte, or at sectors of 512 or 4096
// bytes of which any may be missing; missing bytes inside the file are zero. A pending
// truncation is kept, dropped or done half way. Pending directory changes are kept or
// dropped one by one, so that a later one can survive an earlier one.
package vfs
