package cleaner

// A Strategy says which of two records with the same key survives.
type Strategy struct {
	kind   strategyKind
	header string
}

type strategyKind int8

const (
	byOffset strategyKind = iota
	byTimestamp
	byHeader
)

// ParseStrategy reads offset, timestamp or header:NAME.
func ParseStrategy(s string) (Strategy, error) { return Strategy{}, nil }
