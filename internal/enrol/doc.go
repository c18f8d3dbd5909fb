// Package enrol is how hosts become members of the fleet and stay so: an authority of our own, tokens that bring
// hosts in, certificates that live for a day and are renewed by the agents themselves, and the desk of the server
// that knows who is a member.
//
// The key of an agent is made on its host and never leaves it. A token carries the pin of the authority, so a host
// knows the right server before it says a word of its token. A certificate only says who somebody is; whether he
// may come in is asked of the desk with every connection, so that a revocation takes effect at once and a host that
// slept for a week can still renew.
package enrol
