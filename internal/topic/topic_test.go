package topic

import (
	"strings"
	"testing"
)

func TestParsePartition(t *testing.T) {
	f := func(dir string, want Partition) {
		t.Helper()
		got, err := ParsePartition(dir)
		if err != nil || got != want || got.String() != dir {
			t.Errorf("ParsePartition(%q) = %v, %v, want %v", dir, got, err, want)
		}
	}
	f("orders-0", Partition{"orders", 0})
	f("a-b.c-2147483647", Partition{"a-b.c", 2147483647})
	for _, bad := range []string{"t-+0", "", "-", "-1", "orders", "orders-", "orders-x", "orders-2147483648", "orders--1x"} {
		if got, err := ParsePartition(bad); err == nil {
			t.Errorf("ParsePartition(%q) = %v, want an error", bad, got)
		}
	}
}

func TestValidateName(t *testing.T) {
	for _, good := range []string{"a", "A.b_c-9", strings.Repeat("x", 249)} {
		if err := ValidateName(good); err != nil {
			t.Errorf("ValidateName(%q) = %v", good, err)
		}
	}
	for _, bad := range []string{"t-+0", "", ".", "..", "a b", "ä", "a/b", "a\x00", strings.Repeat("x", 250)} {
		if ValidateName(bad) == nil {
			t.Errorf("ValidateName(%q) = nil", bad)
		}
	}
}

func TestCollisionKey(t *testing.T) {
	if CollisionKey("a.b_c") != CollisionKey("a_b.c") || CollisionKey("a.b") == CollisionKey("a-b") {
		t.Error("'.' and '_' must collide, '-' must not")
	}
}
