package record

import "github.com/gozzard/gozzard"

// Cancel says which operations of a task a caller cancels.
type Cancel struct {
	Caller      gozzard.Caller
	Task        gozzard.TaskID
	Door        string                      // of the task; a task of another one is not found; "": of any
	Only        func(*gozzard.Attempt) bool // nil: all
	RequestHash [32]byte
}
