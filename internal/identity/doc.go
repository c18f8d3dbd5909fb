// Package identity answers one question: which live process belongs to a definition?
//
// The answer follows from evidence: what is on record, which processes the commands of the definition have started,
// which process the pid file names and since when, and what the machine shows. Decide is a pure function: it reads
// nothing and changes nothing. Package host collects the evidence, package supervise acts on the answer.
//
// docs/identity.md explains the rules to people. The tables rules and objections are these rules. The tests check
// every row of them, and the model of package supervise checks that no row is superfluous.
package identity
