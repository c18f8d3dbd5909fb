// Package host is this machine: it runs commands as their user, finds, watches, signals and measures processes. On Linux a process is held by
// pidfd and start time and found through the cgroup it was started in; elsewhere a reduced version says what it cannot do.
//
// What a command leaves behind outlives the agent by construction: it has a session and a cgroup of its own, it is no child that anybody must
// wait for, and its output goes to a file instead of a pipe (see output_linux.go). Closing a Host touches no process.
//
// The umask of commands is that of the agent, because it can only be set for a whole program: the program sets 022 when it starts.
package host
