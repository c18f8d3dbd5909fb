// Package nats is the fabric: it carries commands from the server to the agents and reports from the agents to the
// server. It has three parts: the embedded broker (Broker), the server's end (Hub) and the agent's end (Link).
//
// A message has a subject and a payload. Commands use op.<cloud>.<agent>. Hello and results use res.<cloud>.<agent>.
// Status and heartbeats use st.<cloud>.<agent>. The broker allows an agent to publish on its two report subjects only
// and to subscribe to its command subject only, so the subject of a report identifies the sender. Nothing is ever
// sent to a reply subject: the broker does not check reply subjects, and an agent could name the subject of another
// agent.
//
// The brokers of several servers can form a cluster. Agents may connect to any of them, and their reports stay there. The
// servers talk to each other on sv.<to>.<from>, which no agent may use. A NATS cluster that is not Gozzard's can carry that
// in place of the brokers (External).
//
// The fabric does not guarantee delivery. Server and agent repeat every important message until it is answered.
package nats
