package sqlstore

import (
	"errors"
	"fmt"

	"github.com/gozzard/gozzard"
)

// failure says what an error of the database means for the transaction in which it happened.
type failure uint8

const (
	failStatement failure = iota // the statement failed, the transaction is intact
	failFull                     // the disk is full; the transaction may be rolled back
	failRetry                    // another transaction was in the way: running the same again may succeed
	failBroken                   // the connection or the transaction is lost; the state of the database is not known
	failFatal                    // the disk failed or returned wrong data: nothing may be acknowledged any more
)

// errTxUnknown marks an error after which the state of the transaction is not known.
var errTxUnknown = errors.New("transaction given up")

// losesTx reports whether the whole transaction must be rolled back because of an error. SQLite may have rolled it
// back by itself.
func (w *writer) losesTx(err error) bool {
	return err != nil && (errors.Is(err, errTxUnknown) || w.d.classify(err) != failStatement)
}

// retryOrFail returns the jobs for another try. After a fatal error there is none: it answers the jobs instead.
func (w *writer) retryOrFail(jobs []*job, err error) ([]*job, error) {
	if w.d.classify(err) == failFatal {
		return nil, w.failAll(jobs, err)
	}
	if w.d.reason != nil && w.d.classify(err) == failBroken {
		// Even if the connection lasts: only a new one sees that a database accepts changes again, or leads to another one.
		w.disconnect()
	}
	return jobs, err
}

// failAll answers all jobs with an error. A fatal error stops the store.
func (w *writer) failAll(jobs []*job, err error) error {
	w.stopIfFatal(err)
	for _, j := range jobs {
		w.answer(j, w.callerError(err))
	}
	return err
}

// maintenanceFailed logs an error that is not the error of any call. A fatal one stops the store.
func (w *writer) maintenanceFailed(err error) {
	if !w.stopIfFatal(err) {
		w.o.Log.Warn("database maintenance failed", "err", err)
	}
}

// stopIfFatal makes the store reject every later write when an error means that the disk cannot be trusted any more.
// It calls Options.Fatal once.
func (w *writer) stopIfFatal(err error) bool {
	if w.d.classify(err) != failFatal {
		return false
	}

	e := &gozzard.Error{
		Kind:    gozzard.ErrUnavailable,
		Message: "the disk of the database failed; nothing is recorded until the server is restarted",
		Cause:   err,
	}
	if w.fatal.CompareAndSwap(nil, e) {
		w.o.Fatal(fmt.Errorf("the disk of the database failed: %w", err))
	}

	return true
}

// giveUp makes the store reject every later write for a reason that only a new start can mend. It calls Options.Fatal once.
func (w *writer) giveUp(e *gozzard.Error) error {
	if w.fatal.CompareAndSwap(nil, e) {
		w.o.Fatal(e)
	}
	return e
}

// answer sends a job's result to its caller.
func (w *writer) answer(j *job, err error) {
	var known *gozzard.Error
	if err != nil && !errors.As(err, &known) {
		err = fmt.Errorf("cannot record %s: %w", j.op, err)
	}
	j.done <- err
}

// callerError turns an error of the database into one that callers can act on.
func (w *writer) callerError(err error) error {
	if e := w.fatal.Load(); e != nil {
		return e
	}

	switch w.d.classify(err) {
	case failFull:
		return errFull(err)
	case failStatement:
		if !errors.Is(err, errTxUnknown) {
			return err
		}
	}

	if why := w.d.because(err); why != "" {
		return &gozzard.Error{Kind: gozzard.ErrUnavailable, Message: why + ": nothing was changed; try again later", Cause: err}
	}

	return &gozzard.Error{
		Kind:    gozzard.ErrUnavailable,
		Message: "the database does not respond, try again later",
		Cause:   err,
	}
}

func errFull(cause error) error {
	return &gozzard.Error{
		Kind: gozzard.ErrStorageFull,
		Message: "the disk of the database is full: nothing was changed; free space on that disk, " +
			"or keep results for a shorter time",
		Cause: cause,
	}
}
