// Package agentsock is a Unix socket of the agent for people on the same host. It shows the state of the agent and its
// processes, even while no server can be reached.
//
// # Access
//
// The kernel identifies the account at the other end of every connection. Root and the agent's own account have full
// access. Members of a configured group have read access. All other connections are closed without an answer. The
// mode of the socket allows the same accounts. It is only the second protection, because a mode can be changed by
// mistake.
//
// # What it cannot do
//
// Nothing here starts, stops or changes a process. Operations come only from the server, and they are signed. A second
// way would need a second policy, a second audit and a second order of intents. The only request that changes
// something closes the connection to the server and opens it again.
package agentsock
