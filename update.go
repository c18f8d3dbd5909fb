package gozzard

import "fmt"

// UpdateOrder asks an agent to run a release. The agent does not trust the order: it checks the signature of the
// release.
type UpdateOrder struct {
	Roll     uint64   // number of the upgrade; a release that was refused in one upgrade is checked again in another
	Version  string   // of the release
	Manifest [32]byte // SHA-256 of its manifest
}

// UpdateState is the progress of an agent with an order.
type UpdateState uint8

// The states. All but the first are final for an upgrade.
const (
	UpdateWorking    UpdateState = iota + 1 // the release is downloaded and checked, or runs on trial
	UpdateDone                              // the release runs and has a session with the server
	UpdateRefused                           // the program was not replaced
	UpdateRolledBack                        // the program was replaced, and the previous one runs again
)

// String is the word for the state.
func (s UpdateState) String() string {
	switch s {
	case UpdateWorking:
		return "working"
	case UpdateDone:
		return "done"
	case UpdateRefused:
		return "refused"
	case UpdateRolledBack:
		return "rolled back"
	}
	return fmt.Sprintf("update state %d", uint8(s))
}

// UpdateReport answers an order, each time that it arrives.
type UpdateReport struct {
	Roll    uint64
	Version string
	State   UpdateState
	Reason  string // of UpdateRefused and UpdateRolledBack
}
