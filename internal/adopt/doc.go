// Package adopt keeps a process alive that its supervisor gives up: it takes the ends of pipes and sockets that the
// supervisor holds, and a keeper reads from them until the process has ended.
package adopt
