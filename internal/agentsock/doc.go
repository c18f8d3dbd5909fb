// Package agentsock is an agent's door for people on its own host: a unix socket that says how the agent stands and
// what it keeps, also while no server can be reached.
//
// # Who comes in
//
// The kernel says who is at the other end of every connection. Root and the agent's own account may use every verb,
// members of the group that the agent was told of may look. Nobody else gets a single byte. The mode of the socket
// says the same; it is the second lock, not the first, since a folder can be opened and a mode changed by mistake.
//
// # What it is not
//
// Nothing here starts, stops or changes a process. Operations come from the server, signed, or not at all: a second
// way in would need a second policy, a second record and a second order of intents. The one verb that acts drops
// the link to the server and makes it anew.
package agentsock
