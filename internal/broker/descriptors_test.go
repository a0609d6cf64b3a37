package broker

import (
	"fmt"
	"testing"
)

func TestShareDescriptors(t *testing.T) {
	f := func(limit, dirs int, want string) {
		t.Helper()
		s := shareDescriptors(limit, dirs)
		got := fmt.Sprintf("reserve %d, segments %d, web 2*%d, connections %d", s.reserve, s.segments, s.web, s.connections)
		if got != want {
			t.Errorf("%d descriptors, %d directories: got %s, want %s", limit, dirs, got, want)
		}
		if used := s.reserve + s.segments + 2*s.web + s.connections; limit >= 64 && used != limit {
			t.Errorf("%d descriptors, %d are given away", limit, used)
		}
	}
	f(16, 1, "reserve 26, segments 4, web 2*1, connections 4")
	f(64, 1, "reserve 26, segments 16, web 2*2, connections 18")
	f(400, 1, "reserve 26, segments 100, web 2*12, connections 250")
	f(1024, 1, "reserve 64, segments 256, web 2*32, connections 640")
	f(1024, 12, "reserve 64, segments 256, web 2*32, connections 640")
	f(4096, 12, "reserve 256, segments 1024, web 2*64, connections 2688")
	f(1<<20, 1, "reserve 256, segments 1536, web 2*64, connections 1046656")
}
