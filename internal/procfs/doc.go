// Package procfs is a read-only view of /proc under a given root: the few files that supervision needs, read
// without allocation where that counts. Everything in them but the kernel's own numbers (names, command lines) was
// chosen by the processes and is treated as hostile text.
package procfs
