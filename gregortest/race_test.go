//go:build race

package gregortest_test

const raceDetector = true
