package server

// GarbagePercent is garbagePercent, for tests.
var GarbagePercent = garbagePercent
