package sqlstore_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/record"
)

// benchTask makes a task of n attempts with one definition, like an operation on many hosts.
func benchTask(n int) *record.NewTask {
	spec := gozzard.EncodeSpec(&gozzard.Spec{Identity: gozzard.Identity{ProcName: "gamesvr",
		SetupPath: "/data/gamesvr", PIDPath: "/data/gamesvr/pid"},
		Control: gozzard.Control{Start: "./start.sh", Stop: "./stop.sh"}, Policy: gozzard.DefaultPolicy()})
	labels := map[string]string{"proc_name": "gamesvr", "set": "华南"}
	caller := gozzard.Caller{App: "bk_bench", User: "admin"}
	t := &record.NewTask{Task: gozzard.Task{Caller: caller, Door: "gse.v2", At: time.Now(), Targets: n},
		Attempts: make([]gozzard.Attempt, n)}
	t.Audit = gozzard.AuditRow{At: t.Task.At, Caller: caller, Act: "operate:start", Targets: n}
	for i := range t.Attempts {
		addr := gozzard.HostAddr{IP: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}
		t.Attempts[i] = gozzard.Attempt{Op: gozzard.NewOpID(),
			Agent: gozzard.AgentID(fmt.Sprintf("02000000%024d", i)), Addr: addr,
			Key: gozzard.Key{Namespace: "bk.game", Name: "gamesvr"}, Action: gozzard.ActionStart,
			ResultKey: addr.String() + ":bk.game:gamesvr", Labels: labels,
			Spec: spec, State: gozzard.AttemptPending, Deadline: t.Task.At.Add(time.Minute),
			Expires: t.Task.At.Add(time.Hour)}
	}

	return t
}
