//go:build race

package logdir

const raceDetector = true
