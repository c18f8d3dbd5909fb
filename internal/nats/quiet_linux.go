//go:build linux && !race

package nats

import _ "unsafe" // for linkname

// The embedded server samples its own use of the processor every second, beginning when the program does, server or
// not. An agent has no server, and should sleep while nothing happens: those samples were half of what it used when
// idle. The sampling ends for good when its file cannot be read.

//go:linkname procStatFile github.com/nats-io/nats-server/v2/server/pse.procStatFile
var procStatFile string

// Quiet ends what the embedded server's package does in a program that will not start one. It must be called within
// a second of the program's start.
func Quiet() { procStatFile = "" }
