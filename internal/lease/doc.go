// Package lease gives a piece of work to exactly one of the servers of an installation, for as long as that server holds
// the lease of the work in the record.
//
// A server that was frozen does not know that another one has taken its lease. So the work gets a context with a fence,
// and the record rejects its writes as soon as the lease has another holder (WithFence). Effects outside the record
// ask Check first.
package lease
