// Package agent is the part of Gozzard that decides on a host. It carries out the server's operations and reports
// their verdicts. It writes every intent to the journal before its effect, runs each operation at most once, and
// repeats results until the server has acknowledged them. It supervises the host's processes even without a server.
//
// # Everything that is reported is durable
//
// A report is sent only when everything that it says is on disk. Some things are only in memory: queued operations,
// tombstones that found no room on the disk, and answers to queries. If a crash loses them, no report becomes untrue.
// The comments at each of them say why.
//
// # Sessions
//
// A session is durable before HELLO announces it, and it is never used again. The agent accepts operations only in
// the current session, and only while the lease lasts. The lease counts from the moment at which the agent sent the
// heartbeat that the server answered. So an operation that waited in a socket buffer while the agent was frozen
// arrives after the end of the lease. A session that has lost its lease never gets it back; the agent opens the next
// session.
//
// # Journal position
//
// Reports carry a journal position. Until the Welcome of a session is durable, it is not the present position but
// the base: the position at which the journal was found when the agent last knew that it agrees with the server.
// Otherwise an old copy of the state folder could grow past the position that the server remembers before the two
// are compared.
package agent
