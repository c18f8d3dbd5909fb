//go:build race

package sqlstore_test

// The race detector makes writing many times slower: smaller records and fewer rounds show the same.
const (
	largeRecord = 4 << 20
	killRounds  = 2
)
