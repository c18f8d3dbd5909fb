// Package pace says when a message that was not answered is repeated: after the time that answers take. It also waits for a
// time, unless a context ends before.
package pace
