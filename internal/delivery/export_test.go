package delivery

import "time"

// Change runs f as every change of the engine does, with the lock held.
func (e *Engine) Change(f func(now time.Time)) { e.change(f) }
