package wire

import (
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
)

// ErrNewer is the error (for errors.Is) of a message with a newer protocol than this build supports.
var ErrNewer = errors.New("message of a newer protocol")

// NewerError has the protocol version of a newer message.
type NewerError struct{ Version uint32 }

func (e *NewerError) Error() string {
	return fmt.Sprintf("message of protocol version %d, this build supports up to %d",
		e.Version, gozzard.ProtocolVersion)
}

// Is makes errors.Is(err, ErrNewer) true.
func (e *NewerError) Is(target error) bool { return target == ErrNewer }

// ownVersion is the version of this build unless a message has one.
func ownVersion(v uint32) uint32 {
	if v == 0 {
		return gozzard.ProtocolVersion
	}
	return v
}

// version reads the first field of a message, so that a newer message is detected before any other field is decoded.
func (d *decoder) version() uint32 {
	if !d.next() {
		d.nested(fmt.Errorf("%s: empty", d.what))
		return 0
	}

	if d.num != fieldVersion {
		d.err = fmt.Errorf("%s: %w", d.what, errors.New("does not begin with its version"))
		return 0
	}

	v := d.uint32()
	switch {
	case d.err != nil:
	case v == 0:
		d.fail("no version")
	case v > gozzard.ProtocolVersion:
		d.err = fmt.Errorf("%s: %w", d.what, &NewerError{Version: v})
	}

	return v
}
