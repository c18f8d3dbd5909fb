// Package host is the machine that the agent runs on. It runs commands as their account, and finds, watches,
// signals and measures processes. On Linux a process is identified by pid and start time, held through a pidfd, and
// found through the cgroup that it was started in. On Windows it is identified by handle and start time, and found
// through its job object. Other systems have no agent.
//
// What a command starts outlives the agent: it has its own session and cgroup (on Windows a console and a job that
// closing does not end), no process has to wait for it as a parent, and its output goes to a file instead of a
// pipe. Closing a Host touches no process.
//
// On Linux every command is started from a separate thread. The thread gets the umask, the privileges and the
// version 1 cgroups that the command begins with, and ends with the start. So no code of the agent runs between the
// agent and the shell.
package host
