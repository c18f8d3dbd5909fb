//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gozzard/gozzard/bench/child"
)

// roleFlag makes this program one of the parts that are measured as separate processes. It is the first argument and
// hidden.
const roleFlag = "-role="

// order is a request to a part, one line of JSON; answer is the answer.
type order struct {
	Do     string
	Addr   string
	N      int // connections, or rows
	Rounds int
	Down   int // bytes of a message to the agent
	Up     int // bytes of a message from the agent
	Ack    int // bytes of an acknowledgement to the agent; 0 for none
}

type answer struct {
	Addr  string
	Took  []time.Duration
	Error string
}

// role is a part: it answers orders until its input ends.
type role interface {
	carryOut(o order) (answer, error)
	close()
}

// serveRole runs the part that the arguments name, if they name one.
func serveRole(args []string) (served bool, code int) {
	if len(args) == 0 || !strings.HasPrefix(args[0], roleFlag) {
		return false, 0
	}
	if args[0] == roleFlag+serverRole && len(args) == 2 {
		if err := playServer(args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "spine:", err)
			return true, 1
		}
		return true, 0
	}
	if err := playRole(strings.TrimPrefix(args[0], roleFlag), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "spine:", err)
		return true, 1
	}
	return true, 0
}

func playRole(name string, in io.Reader, out io.Writer) error {
	var r role
	var err error
	switch name {
	case "bare-server":
		r, err = newBareServer()
	case "bare-agents":
		r = &bareAgents{}
	case "ingest-server":
		r, err = newIngestServer()
	case "ingest-links":
		r = &ingestLinks{}
	case "table":
		r = &tableServer{}
	default:
		return fmt.Errorf("no part is called %q", name)
	}

	if err != nil {
		return err
	}

	defer r.close()
	enc := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return fmt.Errorf("cannot read an order: %w", err)
		}
		w, err := r.carryOut(o)
		if err != nil {
			w.Error = err.Error()
		}
		if err := enc.Encode(w); err != nil {
			return err
		}
	}

	return lines.Err()
}

// part is a running role, as the measuring program sees it.
type part struct {
	*child.Process
	in    io.WriteCloser
	pipe  io.Closer
	lines *bufio.Scanner
}

func (b *bench) startPart(name string) (*part, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}

	cmd := exec.Command(self, roleFlag+name)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}

	// Not StdoutPipe: cmd.Wait closes that one, maybe before the last answer is read.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}

	cmd.Stdout = w
	p, err := child.Start(b.dir, name, cmd)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, errors.Join(err, r.Close())
	}

	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20) // all times of a measurement are one line
	return &part{Process: p, in: in, pipe: r, lines: lines}, nil
}

// do sends an order and waits for its answer.
func (p *part) do(o order) (answer, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return answer{}, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return answer{}, errors.Join(fmt.Errorf("cannot send an order to %s: %w", p.Name, err), p.Alive())
	}
	if !p.lines.Scan() {
		return answer{}, errors.Join(fmt.Errorf("%s does not answer", p.Name), p.lines.Err(), p.Alive())
	}

	var w answer
	if err := json.Unmarshal(p.lines.Bytes(), &w); err != nil {
		return answer{}, fmt.Errorf("%s: %w", p.Name, err)
	}
	if w.Error != "" {
		return answer{}, fmt.Errorf("%s: %s", p.Name, w.Error)
	}

	return w, nil
}

// dismiss closes the input of the part, which ends it, and waits.
func (p *part) dismiss() {
	_ = p.in.Close() // fails when the part has ended
	select {
	case <-p.End:
	case <-time.After(5 * time.Second):
		p.Stop()
	}
	_ = p.pipe.Close() // the only writer has ended
}
