package check

import (
	"slices"
	"strings"
)

// checkLeftAlone looks at gregor-left-alone, which lists partitions that the broker does not serve, in
// the form of an offset checkpoint: 0 in place of the offset if the log was clean, else 1.
func (c *checkRun) checkLeftAlone(path string, found *collector) error {
	list, ok, err := c.offsetsIn(path, found)
	if !ok {
		return err
	}
	var names []string
	for p, clean := range list {
		if clean != 0 && clean != 1 {
			found.damage(path, -1, -1, "%v is %d, want 0 or 1", p, clean)
		}
		names = append(names, p.String())
	}
	if n := len(names); n > 0 {
		slices.Sort(names)
		found.note(path, -1, -1, "%d partitions are left alone and not served, because the metadata does not know them: %s",
			n, strings.Join(names[:min(n, 5)], ", "))
	}
	return nil
}
