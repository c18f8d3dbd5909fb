package sheet

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Result is what a run has measured.
type Result interface {
	Done()        // the run has ended: its time is known
	Text() string // the whole page, as Markdown
	Fault() error // what went wrong in the run
}

// Command is what the commands for benchmarks have in common: it measures until it is done, the limit is over or a signal
// ends it, prints the results and writes them to path if it is not empty. It returns the exit code. After an error,
// measure returns what was measured before, or nil; that is printed and not written.
func Command[R Result](name, path string, limit time.Duration, measure func(context.Context) (R, error)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	res, err := measure(ctx)
	if err := write(path, res, err); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

func write[R Result](path string, res R, err error) error {
	var none R
	if any(res) != any(none) {
		res.Done()
		fmt.Print(res.Text())
	}
	if err != nil {
		return err
	}

	if path != "" {
		if err := os.WriteFile(path, []byte(res.Text()), 0o644); err != nil {
			return fmt.Errorf("cannot write the results: %w", err)
		}
	}
	return res.Fault()
}
