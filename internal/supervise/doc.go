// Package supervise keeps one host's processes as asked: one actor per process, a state machine whose decisions are
// pure functions.
package supervise
