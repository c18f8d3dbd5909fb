// Package agent is the brain on a host: it obeys and reports. It journals every intent before its effect, runs each
// operation at most once, repeats results until they are acknowledged, and keeps the host's processes as asked
// while nobody is there to ask.
//
// # What is told is durable
//
// A report leaves only when everything it says is on disk. What is only in memory (queued operations, tombstones
// that found no room, answers to queries) is such that losing it in a crash makes nothing told untrue; see the
// comments at each.
//
// # Sessions
//
// A session is made durable before HELLO tells it and is never used again. Operations are taken in only in the
// current session and only while the server was heard within the lease, counted from when the answered heartbeat
// was sent: what lay in a socket buffer while the agent was frozen finds the lease over. A session whose lease is
// over stays over; the next one is opened.
//
// # Journal position
//
// Until the Welcome of a session is durable its reports carry the position at which the journal was found when the
// agent was last sure of the server's knowledge (the base), not the present one. Otherwise a state folder put back
// from an old copy could grow past the position that the server remembers before anybody compares the two.
package agent
