package uuid

import "testing"

func TestText(t *testing.T) {
	u := UUID{7: 1, 15: 2} // as partition.metadata of Kafka 4.4 has it
	if got, want := u.String(), "AAAAAAAAAAEAAAAAAAAAAg"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
	back, err := Parse(u.String())
	if err != nil || back != u {
		t.Errorf("Parse(String()) = %v, %v, want %v", back, err, u)
	}
	for _, bad := range []string{"", "AAAA", "AAAAAAAAAAEAAAAAAAAAA*", "AAAAAAAAAAEAAAAAAAAAAgA"} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("Parse(%q) succeeded", bad)
		}
	}
}

func TestNew(t *testing.T) {
	seen := map[UUID]bool{}
	for range 1000 {
		u := New()
		if u.IsReserved() || u.String()[0] == '-' || seen[u] {
			t.Fatalf("New() = %v", u)
		}
		seen[u] = true
	}
}

func TestReserved(t *testing.T) {
	for _, u := range []UUID{Zero, Unassigned, Lost, {15: 99}} {
		if !u.IsReserved() {
			t.Errorf("%v is not reserved", u)
		}
	}
	if (UUID{15: 100}).IsReserved() || (UUID{0: 1}).IsReserved() {
		t.Error("an ordinary id is reserved")
	}
}
