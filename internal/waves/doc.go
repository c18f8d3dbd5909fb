// Package waves runs jobs: one action on many processes, in waves. Processes of one group are operated in the order of
// their priorities, and a wave that fails prevents the later waves of its group. A job is durable: a server that
// restarts continues it, and does nothing twice.
package waves
