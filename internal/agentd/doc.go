// Package agentd is the agent of a host as a running program: it puts the parts together (machine, journal, link, key
// ring, policy, act log, local socket), starts and stops them in order, and hands the process over to a new program.
package agentd
