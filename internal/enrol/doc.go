// Package enrol makes hosts members of the fleet. It has a certificate authority, tokens that enrol hosts, certificates
// that are valid for a day and that agents renew by themselves, and the server's Registry of members.
//
// The key of an agent is made on its host and never leaves it. A token contains the pin of the authority, so a host
// verifies the server before it sends any part of its token. A certificate only proves the identity of an agent. The
// Registry decides at every connection whether the agent may connect, so a revocation takes effect at once, and a host
// that was off for a week can still renew.
package enrol
