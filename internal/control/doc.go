// Package control is the brain of the server: it accepts operations, records them, sends them to agents, folds
// their reports in, times out what is silent, and answers.
package control
