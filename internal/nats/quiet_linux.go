//go:build linux && !race

package nats

import _ "unsafe" // for linkname

// The package of the embedded server measures its processor use every second from the start of the program, even if
// no server is started. An agent starts no server and should sleep while nothing happens: those measurements were half
// of its processor use when idle. The measuring stops for good when its file cannot be read.

//go:linkname procStatFile github.com/nats-io/nats-server/v2/server/pse.procStatFile
var procStatFile string

// Quiet stops the background work of the embedded server's package in a program that starts no broker. It must be
// called within a second of the program's start.
func Quiet() { procStatFile = "" }
