//go:build linux

// Package crowd is what the benchmarks of large fleets have in common: parts that run as processes of their own, simulated
// hosts, connections of bare NATS, and callers of a server.
package crowd

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/gozzard/gozzard/bench/child"
)

// roleFlag makes a benchmark one of its parts, which are measured as separate processes. It is the first argument and
// hidden. The second argument is the order of the part, in JSON.
const roleFlag = "-role="

// Play runs the part that the arguments name, if they name one. play reads the order.
func Play(program string, args []string, play func(ctx context.Context, part, order string) error) (played bool, code int) {
	if len(args) != 2 || !strings.HasPrefix(args[0], roleFlag) {
		return false, 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := play(ctx, strings.TrimPrefix(args[0], roleFlag), args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
		return true, 1
	}
	return true, 0
}

// Order reads the order of a part.
func Order[O any](text string) (o O, err error) {
	if err = json.Unmarshal([]byte(text), &o); err != nil {
		err = fmt.Errorf("cannot read the order: %w", err)
	}
	return o, err
}

// StartPart starts this program as a part. Its log is in dir.
func StartPart(dir, part string, order any) (*child.Process, error) {
	return child.StartSelf(dir, part, roleFlag+part, order)
}

// StopAll stops parts, the last one first.
func StopAll(list []*child.Process) {
	for i := len(list) - 1; i >= 0; i-- {
		list[i].Stop()
	}
}

// SpentBy is the CPU that processes have used so far.
func SpentBy(list []*child.Process) (all time.Duration, err error) {
	for _, p := range list {
		cpu, err := p.CPU()
		if err != nil {
			return 0, err
		}
		all += cpu
	}
	return all, nil
}

// Sleep waits, unless ctx ends.
func Sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// FreeAddr finds an address on loopback that nothing uses.
func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}
