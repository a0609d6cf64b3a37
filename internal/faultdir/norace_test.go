//go:build !race

package faultdir

const raceDetector = false
