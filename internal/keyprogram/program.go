package keyprogram

import (
	"bufio"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// greeting is the first line. Its number is the version of the protocol.
const greeting = "gozzard-signer 1"

const (
	maxLine  = 64 << 10
	patience = 30 * time.Second // for one answer: a token may be slow
	farewell = 2 * time.Second  // for the program to end when its input has ended
)

// Options say how the program is started. Command is required.
type Options struct {
	Command []string // the program and its arguments
	Log     *slog.Logger
	// Patience is the longest time for one answer. 0: 30 seconds
	Patience time.Duration
}

// Program is a program that holds keys. It answers one request at a time. A program that ends or does not answer is
// started again with the next request. It is safe for concurrent use.
type Program struct {
	o Options

	mu     sync.Mutex
	closed bool
	run    *run // nil: it does not run
}

// run is one run of the program.
type run struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   io.ReadCloser
	lines chan string   // what it wrote; closed at its end
	why   error         // why there are no more lines; set before lines is closed
	done  chan struct{} // closed when it was waited for
}

// Start starts the program and greets it.
func Start(o Options) (*Program, error) {
	if len(o.Command) == 0 {
		return nil, errors.New("cannot start the signer: no program is named")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Patience == 0 {
		o.Patience = patience
	}

	p := &Program{o: o}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p, p.start()
}

// Close ends the program.
func (p *Program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.end()
	return nil
}

// Public asks for the public key of a name.
func (p *Program) Public(name string) (crypto.PublicKey, error) {
	der, err := p.ask("public " + name)
	if err != nil {
		return nil, err
	}
	return publicKey(name, der)
}

// publicKey reads the answer for a public key.
func publicKey(name string, der []byte) (crypto.PublicKey, error) {
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("the signer's answer for %s is not a public key: %w", name, err)
	}
	return key, nil
}

// Sign asks for a signature with the key of a name. The algorithm is one of the protocol's.
func (p *Program) Sign(name, algorithm string, data []byte) ([]byte, error) {
	return p.ask("sign " + name + " " + algorithm + " " + base64.StdEncoding.EncodeToString(data))
}

// ask sends a request and reads the answer. A run that broke is replaced once: both requests can be repeated.
func (p *Program) ask(request string) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	var err error
	for range 2 {
		if p.closed {
			return nil, errors.New("the signer was ended")
		}
		if err = p.start(); err != nil {
			continue
		}

		var answer string
		if answer, err = p.exchange(request); err != nil {
			p.o.Log.Warn("the external signer does not answer; it is started again", "err", err)
			p.end()
			continue
		}
		return parse(answer)
	}

	return nil, err
}

// parse reads an answer.
func parse(line string) ([]byte, error) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "ok":
		b, err := base64.StdEncoding.DecodeString(rest)
		if err != nil {
			return nil, errors.New("the signer's answer is not in base64")
		}
		return b, nil
	case "error":
		return nil, fmt.Errorf("the signer says: %.300q", rest)
	}
	return nil, fmt.Errorf("the signer's answer begins with %.20q, not with ok or error", word)
}

// start starts the program unless it runs. mu is held.
func (p *Program) start() error {
	if p.run != nil {
		return nil
	}

	// Start it with pipes.
	cmd := exec.Command(p.o.Command[0], p.o.Command[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("cannot start the signer: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("cannot start the signer: %w", err)
	}
	cmd.Stderr = &logWriter{log: p.o.Log}
	cmd.WaitDelay = farewell // for a program that it started and that still has its standard error
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start the signer %s: %w", p.o.Command[0], err)
	}

	// Read its lines until its end.
	r := &run{cmd: cmd, in: in, out: out, lines: make(chan string, 1), done: make(chan struct{})}
	go r.read()
	p.run = r

	// Greet it.
	answer, err := p.exchange(greeting)
	if err == nil {
		_, err = parse(answer)
	}
	if err != nil {
		p.end()
		return fmt.Errorf("the signer %s does not speak %q: %w", p.o.Command[0], greeting, err)
	}
	return nil
}

// read hands on the lines of a run and waits for its end.
func (r *run) read() {
	defer close(r.done)
	r.why = readLines(r.out, func(line string) { r.lines <- line })
	close(r.lines)
	_ = r.out.Close() // a program that still writes ends by that
	_ = r.cmd.Wait()  // the missing answer is the error
}

// readLines reads whole lines of limited length until the end, and returns why it ended. A line without its end is not an
// answer: the rest of it may be missing. One with more behind it is none either: requests are sent one at a time.
func readLines(out io.Reader, take func(string)) error {
	lines := bufio.NewReaderSize(out, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("the signer wrote a line of more than %d bytes", maxLine)
		case err != nil && len(line) > 0:
			return errors.New("the signer ended in the middle of a line")
		case err != nil:
			return errors.New("the signer has ended")
		case lines.Buffered() > 0:
			return errors.New("the signer wrote more than one line for a request")
		}
		take(strings.TrimSpace(string(line)))
	}
}

// exchange writes one line and reads one. A line that is there before would be taken for the answer, and every later
// answer for that of another request: such a run is over. mu is held.
func (p *Program) exchange(request string) (string, error) {
	r := p.run
	select {
	case _, ok := <-r.lines:
		if !ok {
			return "", r.why
		}
		return "", errors.New("the signer wrote a line that was not asked for")
	default:
	}

	timer := time.NewTimer(p.o.Patience)
	defer timer.Stop()

	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(r.in, request+"\n")
		written <- err
	}()

	select {
	case err := <-written:
		if err != nil {
			return "", fmt.Errorf("cannot write to the signer: %w", err)
		}
	case <-timer.C:
		return "", fmt.Errorf("the signer read nothing for %s", p.o.Patience)
	}

	select {
	case line, ok := <-r.lines:
		if !ok {
			return "", r.why
		}
		return line, nil
	case <-timer.C:
		return "", fmt.Errorf("the signer did not answer within %s", p.o.Patience)
	}
}

// end ends the run: by the end of its input, then by a signal. mu is held.
func (p *Program) end() {
	r := p.run
	if r == nil {
		return
	}
	p.run = nil

	_ = r.in.Close()
	go func() {
		for range r.lines { // let the reader come to the end
		}
	}()
	select {
	case <-r.done:
		return
	case <-time.After(farewell):
	}
	_ = r.cmd.Process.Kill() // it may have ended meanwhile
	select {
	case <-r.done:
	case <-time.After(farewell): // a program that it started still has its output
		_ = r.out.Close() // the reader then ends
	}
}

// logWriter writes what the program says on its standard error to the log.
type logWriter struct{ log *slog.Logger }

// Write implements io.Writer.
func (w *logWriter) Write(b []byte) (int, error) {
	if text := strings.TrimSpace(string(b)); text != "" {
		w.log.Warn("the external signer says", "text", fmt.Sprintf("%.1000s", text))
	}
	return len(b), nil
}
