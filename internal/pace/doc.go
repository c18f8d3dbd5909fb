// Package pace says when a message that was not answered is repeated: after the time that answers take.
package pace
