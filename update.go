package gozzard

import "fmt"

// UpdateOrder asks an agent to become a release. It is an order to look at the release, not to believe it: the
// agent checks what the release key signed.
type UpdateOrder struct {
	Roll     uint64   // number of the roll; what was refused is looked at again in another one
	Version  string   // of the release
	Manifest [32]byte // SHA-256 of its manifest
}

// UpdateState is how far an agent is with an order.
type UpdateState uint8

// The states of an update. All but the first are final for a roll.
const (
	UpdateWorking    UpdateState = iota + 1 // it is fetched and checked, or runs on trial
	UpdateDone                              // the release runs and the server has welcomed it
	UpdateRefused                           // the program was not replaced
	UpdateRolledBack                        // it was, and the one before is back
)

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

// UpdateReport answers an order, as often as it is given.
type UpdateReport struct {
	Roll    uint64
	Version string
	State   UpdateState
	Reason  string // UpdateRefused, UpdateRolledBack
}
