//go:build !race

package sqlstore_test

const (
	largeRecord = 20 << 20
	killRounds  = 4
)
