package sim_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
	"github.com/gozzard/gozzard/test/sim"
)

var key = gozzard.Key{Namespace: "sim", Name: "p"}

func run(t *testing.T, h *sim.Host, a gozzard.Action, text string) supervise.Result {
	t.Helper()
	res, err := h.Run(context.Background(), supervise.Run{Key: key, Action: a, Command: text, Timeout: time.Minute})
	if err != nil {
		t.Fatalf("%s %q: %v", a, text, err)
	}
	return res
}

func TestHostBehavesLikeAMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := sim.NewHost()
		if f, err := h.Find(supervise.Query{Key: key}); err != nil || !f.Proc.IsZero() || f.Reason == "" {
			t.Fatalf("find: %+v, %v", f, err)
		}
		if res := run(t, h, gozzard.ActionStart, "sleep 10ms; print hello; ./start.sh"); res.ExitCode != 0 ||
			res.Output != "hello" {
			t.Errorf("start: %+v", res)
		}

		f, err := h.Find(supervise.Query{Key: key})
		if err != nil || !h.Alive(f.Proc) || h.Starts(key) != 1 || len(h.Keys()) != 1 {
			t.Fatalf("find: %+v, %v", f, err)
		}

		exits := make(chan supervise.Exit, 2)
		if _, err := h.Watch(f.Proc, func(e supervise.Exit) { exits <- e }); err != nil {
			t.Fatal(err)
		}

		stop, err := h.Watch(f.Proc, func(e supervise.Exit) { exits <- e })
		if err != nil {
			t.Fatal(err)
		}

		stop()
		h.SetUsage(key, supervise.Usage{FD: 3})

		if u := h.Sample([]supervise.Proc{{PID: 1}, f.Proc}); u[0] != (supervise.Usage{}) || u[1].FD != 3 {
			t.Errorf("usage %+v", u)
		}
		if d, err := h.Inspect(f.Proc); err != nil || d.PID != f.Proc.PID {
			t.Errorf("inspect: %+v, %v", d, err)
		}
		if res := run(t, h, gozzard.ActionQuery, "./version.sh"); res.Output != "1.0" {
			t.Errorf("version: %+v", res)
		}

		run(t, h, gozzard.ActionReload, "ok")
		run(t, h, gozzard.ActionStop, "ok")

		if e := <-exits; !e.Known || h.Alive(f.Proc) || len(h.Live(key)) != 0 {
			t.Errorf("exit %+v", e)
		}

		synctest.Wait()

		if len(exits) != 0 {
			t.Error("a watch that was ended was called")
		}
		if _, err := h.Watch(f.Proc, nil); err == nil {
			t.Error("watched what is gone")
		}
	})
}

func TestCommandsCanGoWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := sim.NewHost()
		if res := run(t, h, gozzard.ActionStart, "fail 3 some text"); res.ExitCode != 3 || res.Output != "some text" {
			t.Errorf("%+v", res)
		}
		if res := run(t, h, gozzard.ActionStart, "hang"); !res.TimedOut || res.ExitCode != -1 {
			t.Errorf("%+v", res)
		}

		for _, text := range []string{"cannot be", "sleep x", "fail x", "exit-after 1s x"} {
			if _, err := h.Run(context.Background(), supervise.Run{Key: key, Command: text}); err == nil {
				t.Errorf("%q ran", text)
			}
		}

		run(t, h, gozzard.ActionStart, "exit-after 50ms 2")
		time.Sleep(time.Second)

		if h.Starts(key) != 1 || len(h.Live(key)) != 0 {
			t.Error("exit-after did not end")
		}

		run(t, h, gozzard.ActionStart, "stubborn")
		p := h.Live(key)[0]
		if err := h.Signal(p, supervise.SignalTerm); err != nil || !h.Alive(p) {
			t.Errorf("a stubborn process ended, %v", err)
		}
		if err := h.Signal(p, supervise.SignalKill); err != nil || h.Alive(p) {
			t.Errorf("a stubborn process survived a kill, %v", err)
		}
	})
}

func TestGivenUpCommandGoesOnUntilCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := sim.NewHost()
		giveUp := func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := h.Run(ctx, supervise.Run{Key: key, Action: gozzard.ActionStart, Command: "sleep 5s",
				Timeout: time.Minute})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("given up with %v", err)
			}
		}

		giveUp()
		time.Sleep(10 * time.Second)

		if len(h.Live(key)) != 1 || h.InFlight(key) != 0 {
			t.Error("a command that was given up did not go on")
		}

		giveUp()

		if err := h.Clear(supervise.Query{Key: key}, nil); err != nil {
			t.Fatal(err)
		}

		time.Sleep(10 * time.Second)

		if len(h.Live(key)) != 0 || h.Peak(key) != 1 {
			t.Error("a cleared command went on")
		}

		h.Launch(key)
		h.Reboot()

		if len(h.Live(key)) != 0 {
			t.Error("alive after a reboot")
		}
	})
}

func TestCommandInFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := sim.NewHost()
		front := func(text string) supervise.Result {
			res, err := h.Run(context.Background(), supervise.Run{
				Key: key, Action: gozzard.ActionStart, Command: text, Timeout: time.Minute, Front: 2 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			return res
		}

		if res := front("front"); !res.Front || len(h.Live(key)) != 1 || h.InFlight(key) != 0 {
			t.Errorf("%+v", res)
		}

		h.End(key, supervise.Exit{Known: true})

		if res := front("front; exit-after 1s 3"); res.Front || res.ExitCode != 3 || h.InFlight(key) != 0 {
			t.Errorf("%+v", res)
		}
		if res := front("hang"); res.Front || !res.TimedOut {
			t.Errorf("%+v", res)
		}
		// Without the front option a command must end.
		if res := run(t, h, gozzard.ActionStart, "front"); !res.TimedOut || len(h.Live(key)) != 0 {
			t.Errorf("%+v", res)
		}
	})
}

func TestKernelAndLogsOfAMachineInMemory(t *testing.T) {
	h := sim.NewHost()
	if mode, err := h.Limit(key, gozzard.Resource{CPU: 5, Enforce: true}); mode == "" || err != nil ||
		len(h.Limits(key)) != 1 {
		t.Errorf("%q, %v", mode, err)
	}
	h.SetKernel("", errors.New("no"))
	if mode, err := h.Limit(key, gozzard.Resource{}); mode != "" || err == nil {
		t.Errorf("%q, %v", mode, err)
	}
	if c := h.ReadLog(gozzard.LogQuery{Key: key, Lines: 5}); c.Error == "" || len(c.Data) != 0 {
		t.Errorf("%+v", c)
	}
}
