// Package nats is the fabric that carries commands to agents and their reports back: the embedded broker, the
// server's end (Hub) and the agent's end (Link).
//
// A message goes by its subject only: op.<cloud>.<agent> down, res.<cloud>.<agent> (hello and results) and
// st.<cloud>.<agent> (status and heartbeat) up. The broker lets an agent publish on its own two and subscribe to
// its own one, so the subject says who sent a report. Nothing is ever sent to a reply subject: the broker does not
// check those, and an agent could name another agent's.
//
// The fabric promises nothing about delivery. What matters is repeated until it is answered, by the brains at both
// ends.
package nats
