// Package offlinetest makes log directories, good and bad, for tests of the packages beside it.
package offlinetest
