// Package procfs is a read-only view of /proc under a given root. It has the few files that supervision needs, and
// reads them without allocation where that matters. Everything in them except the kernel's own numbers (names, command
// lines) was chosen by the processes and is treated as hostile text.
package procfs
