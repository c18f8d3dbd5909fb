package agentsock

import "context"

// DatabaseGroups is for kernels that the tests do not run on.
var DatabaseGroups = databaseGroups

// AsStranger and AsMember are contexts of requests with that rank.
func AsStranger() context.Context {
	return context.WithValue(context.Background(), peerKey{}, &conn{rank: stranger})
}
func AsMember() context.Context {
	return context.WithValue(context.Background(), peerKey{}, &conn{rank: member})
}
