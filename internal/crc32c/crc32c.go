// Package crc32c has the checksum of Kafka's batches and snapshots: CRC-32 of Castagnoli.
package crc32c

import (
	"hash"
	"hash/crc32"
)

// Table is the polynomial's.
var Table = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the checksum of b.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, Table) }

// New returns a running checksum.
func New() hash.Hash32 { return crc32.New(Table) }
