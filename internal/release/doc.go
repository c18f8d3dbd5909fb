// Package release describes releases of this program: a signed manifest with the version, the expiry and the programs.
// The release key does not belong to the operators of servers, so a server can distribute a release but cannot make
// one.
package release
