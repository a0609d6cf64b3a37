package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// A StatusError is an error that a client gets with the HTTP status it names. Every other
// error is 500.
type StatusError struct {
	Status int
	Err    error
}

func (e *StatusError) Error() string { return e.Err.Error() }
func (e *StatusError) Unwrap() error { return e.Err }

// Refuse returns a *StatusError with the message of fmt.Errorf.
func Refuse(status int, format string, args ...any) error {
	return &StatusError{status, fmt.Errorf(format, args...)}
}

// errorAnswer is the body of an answer that is an error.
type errorAnswer struct {
	Error string `json:"error"`
}

// JSON makes a handler of a function: what it returns is the answer, an error becomes
// {"error": "..."}.
func JSON(f func(r *http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := f(r)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, answer)
	})
}

// ReadJSON decodes the body of a request; fields that nobody knows are refused.
func ReadJSON(r *http.Request, question any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(question); err != nil {
		return Refuse(http.StatusBadRequest, "request: %w", err)
	}
	return nil
}

func writeError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	var s *StatusError
	if errors.As(err, &s) {
		status = s.Status
	}
	writeJSON(w, status, errorAnswer{err.Error()})
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	b, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error": "the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(b, '\n')) // a client that went away needs no answer
}
