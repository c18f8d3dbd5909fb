package control_test

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/control"
	"github.com/gozzard/gozzard/internal/record"
	"github.com/gozzard/gozzard/internal/sqlstore"
)

// slowGroups is a record whose first read of groups waits.
type slowGroups struct {
	*sqlstore.Store
	first  *sync.Once
	ready  chan struct{} // closed: the first read goes on
	single *atomic.Int64 // reads for one host
}

func (s slowGroups) Groups(ctx context.Context, ns string, agents []gozzard.AgentID) ([]record.GroupLimits, error) {
	s.first.Do(func() { <-s.ready })
	if len(agents) == 1 {
		s.single.Add(1)
	}
	return s.Store.Groups(ctx, ns, agents)
}

// Hosts that come back together share a read of their pools, and each gets its own.
func TestGroupsAreReadTogether(t *testing.T) {
	r := &rig{t: t, lease: time.Minute, path: filepath.Join(t.TempDir(), "gozzard.db"),
		sent: map[gozzard.AgentID][]*gozzard.Command{}}
	slow := slowGroups{first: new(sync.Once), ready: make(chan struct{}), single: new(atomic.Int64)}
	r.around = func(s *sqlstore.Store) control.Store {
		slow.Store = s
		return slow
	}
	r.start()
	t.Cleanup(func() { r.stop() })
	goOn := sync.OnceFunc(func() { close(slow.ready) })
	t.Cleanup(goOn) // else the server of a test that fails does not stop

	// One of the hosts has a pool.
	if err := r.store.SetGroups(t.Context(), []record.GroupLimits{{Agent: "agent-7", Namespace: "shop", Group: "web",
		Addr: gozzard.HostAddr{IP: netip.MustParseAddr("127.0.0.7")}}}, gozzard.AuditRow{At: time.Now()}); err != nil {
		t.Fatal(err)
	}

	// All of them say HELLO while the first read waits.
	agentAt := func(i int) gozzard.AgentID { return gozzard.AgentID(fmt.Sprintf("agent-%d", i)) }
	for i := 1; i <= 9; i++ {
		r.hello(agentAt(i), 1, journalA)
	}
	goOn()

	for i := 1; i <= 9; i++ {
		r.until("no pools", func() bool { return len(r.commands(agentAt(i), gozzard.CommandGroups)) > 0 })
		got := r.commands(agentAt(i), gozzard.CommandGroups)[0].Groups
		if has := len(got) == 1 && got[0].ID == "web"; has != (i == 7) {
			t.Errorf("host %d got %+v", i, got)
		}
	}
	if n := slow.single.Load(); n > 4 { // the first one, one of the loop that repeats them, and late ones
		t.Errorf("%d reads were for one host only", n)
	}
}
