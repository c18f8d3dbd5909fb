package gozzard_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gozzard/gozzard/internal/delivery"
)

// The protocol as it is, and the protocol with one mechanism removed at a time.

var modelFull = flag.Bool("model.full", false,
	"explore the larger configurations of the delivery protocol too (minutes, 2 GB)")

// TestProtocol explores every reachable state of bounded worlds: no operation takes effect twice, every verdict is
// true and stays, intents take effect in their order, and without further faults every attempt gets its verdict.
func TestProtocol(t *testing.T) {
	configs := []config{
		{ops: 2, connects: 3, slots: 1},
		{ops: 2, connects: 2, slots: 1, journalFaults: 1},
		{ops: 1, connects: 4, slots: 2, journalFaults: 2},
		{ops: 2, connects: 3, slots: 1, replaced: 2},
	}
	configs = append(configs, homeWorlds...)

	if *modelFull {
		configs = append(configs,
			config{ops: 2, connects: 3, slots: 2, journalFaults: 1},
			config{ops: 2, connects: 4, slots: 1, journalFaults: 1},
			config{ops: 3, connects: 2, journalFaults: 1},
			config{ops: 3, connects: 1, slots: 2},
			config{ops: 3, connects: 2, replaced: 1},
		)
		configs = append(configs, largeHomeWorlds...)
	}

	var seen moves
	for _, c := range configs {
		t.Run(c.String(), func(t *testing.T) {
			r := exploreProtocol(c)
			if r.disagrees != "" {
				t.Error(r.disagrees)
			}
			for from := range r.moves {
				for e := range r.moves[from] {
					seen[from][e] = seen[from][e] || r.moves[from][e]
				}
			}
			line := fmt.Sprintf("delivery protocol, %v: %d states explored, depth %d", c, r.States, r.Depth)
			t.Log(line)
			fmt.Println(line)
			if r.Bad != "" {
				t.Error(r)
			}
		})
	}

	everyMoveIsExplored(t, &seen)
}

// everyMoveIsExplored compares the state machine of package delivery with the model: the model explored every change of
// the record that the state machine regards as possible. One exception is a dispatch that is undone because nothing
// was sent in its session: in the model a row that is dispatched is sent. The other one is what a server forgets because
// another one delivers it: that changes nothing in the record.
func everyMoveIsExplored(t *testing.T, seen *moves) {
	for _, s := range delivery.States() {
		for _, e := range delivery.Events() {
			next, _ := delivery.Next(s, e)
			if s.Record() == 0 || next.Record() == s.Record() || e == delivery.Returned || next == delivery.Elsewhere {
				continue
			}
			if !seen[s.Record()][e] {
				t.Errorf("%v goes to %v by %v, but in no world of the model does %v", s, next, e, s.Record())
			}
		}
	}
}

func (c config) String() string {
	if c.servers > 0 {
		return c.homesString()
	}
	return fmt.Sprintf("%d operations, %d sessions, %d slow servers, %d journal losses, %d replaced records", c.ops,
		c.connects, c.slots, c.journalFaults, c.replaced)
}

const (
	twice     = "takes effect twice"
	afterward = "takes effect after its verdict was recorded"
	wrong     = "and took effect"
	disorder  = "an older intent takes effect after a newer one"
	stuck     = "never gets a verdict"
	unknown   = "rejected for a newer one that no server knows"
)

// mutation is a protocol without one of its mechanisms.
type mutation struct {
	name   string
	broken mechanism
	in     config
	breaks string // part of the promise that is broken
}

// serverMutations are those of servers without a memory. The first nine mechanisms belong to the protocol, the others are
// rules for the code that uses it.
var serverMutations = []mutation{
	{"session not durable at connect", durableSession, config{ops: 1, connects: 2}, afterward},
	{"session registered though not greater", registerIfGreater, config{ops: 1, connects: 2}, stuck},
	{"sent without the compare-and-set", casBeforeSend, config{ops: 2, connects: 1, slots: 1}, afterward},
	{"session not checked by the agent", sessionIsCurrent, config{ops: 1, connects: 2}, afterward},
	{"generation not checked by the agent", genIsNewest, config{ops: 2, connects: 1}, disorder},
	{"no INTENT before the effect", intentBeforeEffect, config{ops: 1, connects: 2}, wrong},
	{"INTENT not synced", intentIsSynced, config{ops: 1, connects: 2}, wrong},
	{"no TOMBSTONE on CANCEL", tombstoneOnCancel, config{ops: 1, connects: 1}, afterward},
	{"INTENT without DONE run again", interruptedOnRecovery, config{ops: 1, connects: 2}, twice},

	{"change of journal forgotten after HELLO", journalSinceSession,
		config{ops: 1, connects: 2, journalFaults: 1}, wrong},
	{"reconciled whatever session the row has", settleFromSession, config{ops: 1, connects: 2, slots: 1}, afterward},
	{"cancelled under another journal", cancelInSameJournal, config{ops: 1, connects: 2, journalFaults: 1}, wrong},
	{"withdrawn though dispatched", withdrawOnlyPending, config{ops: 2, connects: 1, slots: 1}, afterward},
	{"tombstone forgotten in its session", tombstoneOutlivesAck, config{ops: 1, connects: 1}, afterward},
	{"verdict acknowledged before it is recorded", ackAfterRecord, config{ops: 1, connects: 2}, wrong},
	{"base not lifted by HELLO", baseLifted, config{ops: 2, connects: 2, replaced: 1}, unknown},
}

// TestProtocolMutations removes one mechanism at a time, and each removal must break a promise. That proves that every
// mechanism is needed, and that the model is strong enough to notice.
func TestProtocolMutations(t *testing.T) {
	clean := map[config]bool{} // worlds in which nothing is wrong with nothing removed
	for _, tt := range slices.Concat(serverMutations, homeMutations) {
		t.Run(tt.name, func(t *testing.T) {
			if !clean[tt.in] {
				if r := exploreProtocol(tt.in); r.Bad != "" {
					t.Fatalf("with nothing removed: %v", r)
				}
				clean[tt.in] = true
			}
			tt.in.broken = tt.broken
			r := exploreProtocol(tt.in)
			if !strings.Contains(r.Bad, tt.breaks) {
				t.Fatalf("%d states and no counterexample with %q, but %q", r.States, tt.breaks, r.Bad)
			}
			t.Logf("%d states; %v", r.States, r)
		})
	}
}
