// Package notify sends alerts about processes, hosts and tasks to receivers outside: each at least once, in groups, and
// without delaying anything else.
package notify
