package record

import "github.com/gregor-kafka/gregor/internal/record"

// A Builder makes one v2 batch of records. It is for one goroutine.
type Builder = record.Builder

// BuilderOptions say what a batch has besides its records. The zero value is what a producer sends that is not
// idempotent and does not compress.
type BuilderOptions = record.BuilderOptions

// A Producer is who sends, if it is idempotent, and which number the first record has.
type Producer = record.Producer

// NewBuilder returns a Builder for one batch.
func NewBuilder(o BuilderOptions) *Builder { return record.NewBuilder(o) }

// A SetBuilder makes a message set of format v0 or v1: one message per record, or one wrapper around all of them if
// there is a codec. It is for one goroutine.
type SetBuilder = record.SetBuilder

// SetOptions say how a message set is made.
type SetOptions = record.SetOptions

// NewSetBuilder returns a SetBuilder. Formats other than v0 and v1, and zstd, which these cannot have, are refused.
func NewSetBuilder(o SetOptions) (*SetBuilder, error) { return record.NewSetBuilder(o) }
