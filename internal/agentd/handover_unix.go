//go:build unix

package agentd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// errHandOver ends a run so that the program on disk can take over this process.
var errHandOver = errors.New("a new program takes over")

// handOverGrace is how long a program that is rolled back may take to end its work. After that it is replaced as in a
// crash.
const handOverGrace = 5 * time.Second

// runUpgradable calls run until ctx ends. On SIGUSR2, when the updater has put a release in place, or when the server
// restarts the agent, the program file takes over this very process with the same arguments. The pid and the children stay, so no supervised process
// notices. A program file that is not trusted, or cannot print its version, is rejected and this program continues. A
// program on trial that the server does not accept in time, or that fails, hands its process back to the one before.
func runUpgradable(ctx context.Context, o Options, run func(context.Context) error) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program's file: %w", err)
	}

	// Watch for requests to hand over, beside the run.
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR2)
	ctx, end := context.WithCancelCause(ctx)
	w := &handOverWatch{o: o, self: self, asked: asked, end: end}
	var wg sync.WaitGroup
	wg.Go(func() { w.watch(ctx) })

	err = run(ctx)
	over := context.Cause(ctx) // before it is ended here
	end(nil)
	wg.Wait()

	// Without a request: end, or go back to the program before if this one failed its trial.
	if !errors.Is(over, errHandOver) {
		if err != nil && over == nil && rollBack(o, fmt.Sprintf("it ended: %v", err)) {
			return handOver(self)
		}
		signal.Stop(asked)
		return err
	}

	// The state folder may be in doubt: leave the decision to what starts this program.
	if err != nil && !w.back {
		return fmt.Errorf("cannot hand over to %s: %w", self, err)
	}

	return handOver(self)
}

// handOverWatch decides when a run ends for another program.
type handOverWatch struct {
	o     Options
	self  string
	asked <-chan os.Signal
	end   context.CancelCauseFunc
	back  bool // to the program before; read after watch has returned
}

func (w *handOverWatch) watch(ctx context.Context) {
	var placed, welcomed <-chan struct{}
	var limit <-chan time.Time
	trial := false

	if up := w.o.updates; up != nil {
		placed = up.Placed()
		if trial, welcomed = up.OnTrial(); trial {
			limit = time.After(up.Limit())
			w.o.Log.Info("this program is on trial until the server accepts its connection", "version", w.o.Version,
				"limit", up.Limit().String())
		}
	}

	for {
		select {
		case <-ctx.Done():
			return
		case <-welcomed:
			trial, welcomed, limit = false, nil, nil
			continue
		case <-limit:
			if w.goBack() {
				return
			}
			trial, limit = false, nil
			continue
		case <-w.o.restarts: // restarter.Check has found that the program can take over, and the intent is on disk
			w.o.Log.Info("the agent restarts, as the server ordered", "file", w.self, "running", w.o.Version)
			w.end(errHandOver)
			return
		case <-w.asked:
		case <-placed:
		}

		if trial {
			w.o.Log.Warn("hand-over rejected: this program is on trial itself", "running", w.o.Version)
			continue
		}
		if w.handOverTo(ctx) {
			return
		}
	}
}

// goBack ends a trial that took too long.
func (w *handOverWatch) goBack() bool {
	reason := "the server did not accept its connection within " + w.o.updates.Limit().String()
	if !rollBack(w.o, reason) {
		return false
	}

	w.back = true
	w.end(errHandOver)
	time.AfterFunc(handOverGrace, func() {
		w.o.Log.Error("this program does not end in time, so it is replaced while it works", "err", handOver(w.self))
	})
	return true
}

// handOverTo ends the run if the program on disk can take over.
func (w *handOverWatch) handOverTo(ctx context.Context) bool {
	next, err := checkTakeOver(ctx, w.o.Data, w.self)
	if err != nil {
		w.o.Log.Error("hand-over rejected, this program continues", "file", w.self, "running", w.o.Version, "err", err)
		return false
	}

	w.o.Log.Info("the program on disk takes over", "file", w.self, "running", w.o.Version, "new", next)
	w.end(errHandOver)
	return true
}

// rollBack ends a trial by putting the previous program in place. False: there is no trial, or no previous program.
func rollBack(o Options, reason string) bool {
	if o.updates == nil {
		return false
	}
	if trial, _ := o.updates.OnTrial(); !trial {
		return false
	}
	if err := o.updates.RollBack(reason); err != nil {
		o.Log.Error("cannot go back to the previous program; the new one stays although it failed",
			"version", o.Version, "reason", reason, "err", err)
		return false
	}
	return true
}

// handOver gives this process to the program file. It returns only with an error.
func handOver(self string) error {
	// The new program inherits that the signal is ignored until it listens: a second request must not end it.
	signal.Ignore(syscall.SIGUSR2)
	return os.NewSyscallError("cannot hand over to "+self+": execve", syscall.Exec(self, os.Args, os.Environ()))
}
