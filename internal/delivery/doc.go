// Package delivery brings attempts to their agents and their verdicts back: a state machine for one attempt, the
// queues of all attempts, and the engine that carries out what they ask for. See DESIGN.md.
package delivery
