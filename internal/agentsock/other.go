//go:build !linux

package agentsock

import (
	"context"
	"errors"
	"net"
)

// Supported says whether this system identifies the account at the other end of a socket.
const Supported = false

var errUnsupported = errors.New("an agent has no local socket on this system")

type socket struct {
	*net.UnixListener
	group *uint32
}

func listenAt(string, string) (*socket, error) { return nil, errUnsupported }

func (s *socket) close() {}

func (s *socket) inPlace() bool { return true }

func peerOf(*net.UnixConn) (peer, error) { return peer{}, errUnsupported }

func ownUID() uint32 { return 0 }

func dial(context.Context, string) (net.Conn, error) { return nil, errUnsupported }
