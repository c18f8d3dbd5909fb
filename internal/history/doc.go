// Package history keeps what an agent measured of each process, in ring files of a fixed size: a day in steps of ten
// seconds and thirty days in steps of five minutes.
//
// A file has a header and two rings of blocks. A block has six steps and the number of its place in time, so a block of an
// earlier turn of the ring is never taken for a present one. A checksum guards each block: a block that is torn, damaged or
// foreign reads as a hole.
//
// Add only changes memory. One goroutine writes, about once a minute: a slow disk delays neither measurements nor
// supervision. It writes to one file for all processes, and moves the blocks to the files of the processes every five minutes. A
// crash of the agent loses about a minute.
package history
