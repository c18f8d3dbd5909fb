package delivery_test

import (
	"testing"
	"time"

	"github.com/gozzard/gozzard"
)

// While a write of the record takes long, the timer goes on: an agent that is silent is noticed, and what has no answer is
// repeated. Else a server with a slow record would take its own delay for silence of its hosts, and hosts for lost.
func TestTimerGoesOnWhileTheRecordIsSlow(t *testing.T) {
	inWorldWith(t, 16, true, func(w *world) {
		w.connect("quiet", 1)
		w.connect("loud", 1)
		slow := make(chan struct{})
		w.mu.Lock()
		w.slow = slow
		w.mu.Unlock()

		w.launch(0, "quiet") // without an answer it is given up, which the record does not take
		for range 16 {
			time.Sleep(time.Second)
			w.Heard("loud", 1, time.Now())
		}
		if _, online, _ := w.Session("quiet"); online {
			t.Error("a silent agent was not noticed")
		}

		repeated := len(w.commands(gozzard.CommandOperate))
		w.launch(0, "loud")
		for range 5 {
			time.Sleep(time.Second)
			w.Heard("loud", 1, time.Now())
		}
		if n := len(w.commands(gozzard.CommandOperate)); n < repeated+2 {
			t.Errorf("an operation without an answer was sent %d times", n-repeated)
		}
		close(slow)
	})
}
