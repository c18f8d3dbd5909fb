// Package policy is what the owner of a host allows the server to do there. The policy is a file on the host that the
// server can neither read nor write.
//
// The agent asks the policy about every operation before it takes effect, and about every command before it runs. A
// rejection is one line that names the file and the setting, so that the reader of an API's answer knows what to
// change and where.
package policy
