//go:build race

package wire

const raceDetector = true
