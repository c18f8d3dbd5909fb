package server

// The decisions about memory, for tests.
var (
	GarbagePercent = garbagePercent
	GivesBack      = givesBack
)
