// Package policy is what the owner of a host lets the server do there: a file on the host that the server can read
// nothing from and write nothing to.
//
// It is asked about every operation before it takes effect and about every command before it runs. A refusal is one
// line that names the file and the setting, so that whoever reads it in the answer of an API knows what to change
// and where.
package policy
