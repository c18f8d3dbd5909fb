// Package policy is what the owner of a host allows the server to do there. The policy is a file on the host that no
// message of the server can read or write. A command that runs as root can: docs/security.md says what that means.
//
// The agent asks the policy about every operation before it takes effect, and about every command before it runs. A
// rejection is one line that names the file and the setting, so that the reader of an API's answer knows what to
// change and where.
package policy
