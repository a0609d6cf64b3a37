package fieldtable

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	got, err := Parse(`# a comment

## and a title
metadata A key=3 versions=0-2 flexible=1+
  0+ Id int32 default=-1
  1-2 Parts []Part tag=4 nullable=2+
    0 Name string
  0+ More Part

data B versions=1 flexible=none
  0+ X Shape
  struct Shape
    0+ Size int64
`)
	if err != nil {
		t.Fatal(err)
	}
	part := &Struct{"Part", []*Field{{Name: "Name", Type: "string", Max: 0, Tag: -1, Nullable: NotFlexible}}}
	shape := &Struct{"Shape", []*Field{{Name: "Size", Type: "int64", Max: NotFlexible, Tag: -1, Nullable: NotFlexible}}}
	want := []*Record{
		{Struct{"A", []*Field{
			{Name: "Id", Type: "int32", Max: NotFlexible, Tag: -1, Nullable: NotFlexible, Default: "-1"},
			{Name: "Parts", Type: "Part", Array: true, Min: 1, Max: 2, Tag: 4, Nullable: 2, Sub: part},
			{Name: "More", Type: "Part", Max: NotFlexible, Tag: -1, Nullable: NotFlexible, Sub: part},
		}}, "metadata", 3, 2, 1},
		{Struct{"B", []*Field{{Name: "X", Type: "Shape", Max: NotFlexible, Tag: -1, Nullable: NotFlexible, Sub: shape}}}, "data", 0, 1, NotFlexible},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got[0].Fields[1].Sub != got[0].Fields[2].Sub {
		t.Error("a structure that is named twice is two")
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"metadata",
		"metadata A key=x",
		"metadata A versions=0-",
		"metadata A flexible=x+",
		"  0+ Id int32",
		"metadata A\n    0+ Id int32",
		"metadata A\n  0+ Id",
		"metadata A\n  x Id int32",
		"metadata A\n  0+ Id int32 tag=x",
		"metadata A\n  0+ Id int32 nullable=",
	} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
