//go:build linux

package console_test

import (
	"syscall"
	"testing"

	"github.com/gozzard/gozzard/test/console"
	"github.com/gozzard/gozzard/test/fleettest"
)

// sleeper is a process that the agent does not start again, so that its end stays on the screen.
const sleeper = `
name: sleeper
namespace: shop
command: [sleep, "100000"]
folder: /
restart: never
start_check: 1s
`

// TestCrashAppears: a process that dies is on the overview without a touch of the page.
func TestCrashAppears(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	p := f.Open(t)
	p.EnterByLink()
	p.WaitText("No process is registered yet")
	p.Accessible()

	// The process appears when it is defined and started.
	f.Define(t, sleeper)
	f.Operate(t, "start", "sleeper")
	p.WaitText("1 process on 1 host")
	p.WaitText("Nothing is wrong.")
	p.Accessible()

	// Its end appears, too.
	p.Eval(`window.untouched = true`, nil)
	fleettest.KillPID(t, int(f.Process(t, "sleeper").PID))
	p.WaitNoText("Nothing is wrong.")
	p.WaitText("sleeper")
	var untouched bool
	if p.Eval(`window.untouched === true`, &untouched); !untouched {
		t.Error("the page was loaded again")
	}
	p.Accessible()
}

// TestServerGone: a page whose server is gone says so, and is live again when the server is back.
func TestServerGone(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	p := f.Open(t)
	p.EnterByLink()
	p.WaitSelector(".live-live")
	p.Allow("ERR_") // requests that find no server
	f.Kill(syscall.SIGKILL)
	p.WaitText("No connection to the server")
	p.Accessible()
	f.Restart()
	p.WaitNoText("No connection to the server")
	p.WaitSelector(".live-live")
}

// TestQuietStream: while nothing happens the stream says so, in a form that the page can see. Otherwise the page would
// take the silence for a lost connection.
func TestQuietStream(t *testing.T) {
	t.Parallel()
	f := console.StartFleet(t, 1)
	p := f.Open(t)
	p.EnterByLink()
	p.WaitSelector(".live-live")
	p.Eval(`(async () => {
		const b = await (await fetch("/api/v1/live/snapshot")).arrayBuffer();
		const head = JSON.parse(new TextDecoder().decode(new Uint8Array(b, 8, new DataView(b).getUint32(4, true))));
		const s = new EventSource("/api/v1/live/stream?epoch=" + head.epoch + "&after=" + head.seq);
		await new Promise((heard) => s.addEventListener("beat", heard));
		s.close();
	})()`, nil)
}
