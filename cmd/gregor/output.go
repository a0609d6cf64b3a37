package main

import (
	"encoding/json"
	"io"
	"os"

	"golang.org/x/term"
)

// terminal is f if it is a terminal, nil otherwise.
func terminal(f *os.File) io.Writer {
	if term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
