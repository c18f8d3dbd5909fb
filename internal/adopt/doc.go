// Package adopt keeps a process alive that its supervisor gives up: it makes systemd leave a service alone, moves its
// processes to the cgroups of the agent, takes the ends of pipes and sockets that a supervisor holds, and a keeper reads
// from them until the process has ended.
package adopt
