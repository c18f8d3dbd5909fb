// Package host is this machine: it runs commands as their user, finds, watches, signals and measures processes. On
// Linux a process is held by pidfd and start time and found through the cgroup it was started in, on Windows by
// handle and start time and through its job object; elsewhere a reduced version says what it cannot do.
//
// What a command leaves behind outlives the agent by construction: it has a session and a cgroup of its own (on
// Windows a console and a job that closing does not end), it is no child that anybody must wait for, and its output
// goes to a file instead of a pipe. Closing a Host touches no process.
//
// On Linux every command is started from a thread of its own, which is given the umask, the privileges and the
// version 1 cgroups that the command is to begin with, and ends with the start. So nothing of ours runs between the
// agent and the shell.
package host
