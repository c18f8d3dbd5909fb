package gozzard_test

import "fmt"

// The worlds with homes, and the mechanisms that several servers need.

// homeWorlds are explored in every run, largeHomeWorlds with -model.full.
var (
	homeWorlds = []config{
		{servers: 2, ops: 2, connects: 2, stops: 1},
		{servers: 2, ops: 2, connects: 2, slots: 1},
		{servers: 2, ops: 2, connects: 1, stops: 1, slots: 1, inOrder: true},
		{servers: 2, ops: 1, connects: 2, stops: 1, slots: 1, lost: 1, journalFaults: 1},
		{servers: 3, ops: 1, connects: 2, stops: 1, slots: 1, lost: 1},
		{servers: 2, ops: 1, connects: 2, stops: 1, slots: 1, lost: 1, cancels: true},
		{servers: 2, ops: 2, connects: 1, slots: 1, inOrder: true, cancels: true},
	}

	largeHomeWorlds = []config{
		{servers: 2, ops: 2, connects: 2, stops: 1, slots: 1, inOrder: true},
		{servers: 2, ops: 2, connects: 2, stops: 1, lost: 1, journalFaults: 1},
		{servers: 3, ops: 1, connects: 2, stops: 2, slots: 1, lost: 1},
		{servers: 3, ops: 2, connects: 1, stops: 2, inOrder: true},
		{servers: 2, ops: 3, connects: 1, stops: 1, inOrder: true},
		{servers: 2, ops: 2, connects: 2, slots: 1, cancels: true},
	}
)

func (c config) homesString() string {
	s := fmt.Sprintf("%d servers with homes, %d operations, %d sessions, %d servers stop, %d late writes, "+
		"%d lost answers, %d journal losses", c.servers, c.ops, c.connects, c.stops, c.slots, c.lost, c.journalFaults)
	if c.inOrder {
		s += ", in order"
	}
	if c.cancels {
		s += ", callers cancel"
	}
	return s
}

const (
	overtaken   = "is sent while an older one waits"
	sameRequest = "a request takes effect twice"
)

// Worlds in which the mutations are looked for.
var (
	twoServers = config{servers: 2, ops: 1, connects: 2, slots: 1}
	oneStops   = config{servers: 2, ops: 1, connects: 2, stops: 1}
	lostAnswer = config{servers: 2, ops: 1, connects: 1, lost: 1}
	twoOps     = config{servers: 2, ops: 2, connects: 1, slots: 1}
	cancelling = config{servers: 2, ops: 1, connects: 2, slots: 1, cancels: true}
	ordered    = config{servers: 2, ops: 2, connects: 1, slots: 1, inOrder: true}
)

// homeMutations remove what several servers need, and then what one server needs too.
var homeMutations = []mutation{
	{"homes: nothing but wake-ups", lookIntoRecord, oneStops, stuck},
	{"homes: looks for pending attempts only", lookForAll, lostAnswer, stuck},
	{"homes: looks for attempts only that are not held", lookAtHeld, oneStops, stuck},
	{"homes: what a former home recorded is left", lookSettlesLate, oneStops, stuck},
	{"homes: looks before HELLO has decided", lookAfterHello, oneStops, wrong},
	{"homes: a look decides whatever session the row has", lookFromSession, twoServers, afterward},
	{"homes: session and attempts not read together", lookInOneRead, oneStops, afterward},
	{"homes: HELLO decides about memory only", takeOver, oneStops, wrong},
	{"homes: dispatched in a session that is not registered", dispatchAtHome, oneStops, stuck},
	{"homes: heartbeats answered by any server", leaseFromHome, oneStops, stuck},
	{"homes: a write without an answer counts as done", doubtLookedUp, twoServers, afterward},
	{"homes: a request without an answer is recorded again", requestLookedUp,
		config{servers: 2, ops: 2, connects: 1, lost: 1}, sameRequest},
	{"homes: recorded as sent while an older one waits", readyToBear, ordered, overtaken},
	{"homes: dispatched from memory without a look", dispatchInOrder, ordered, overtaken},
	{"homes: numbers not in the order of commits", numbersInOrder, ordered, overtaken},

	{"homes: a cancelled attempt is sent", recalledIsNotSent, cancelling, afterward},
	{"homes: cancelled though it was sent", recallOnlyUnsent, cancelling, afterward},
	{"homes: cancelled whatever session the row has", recallFromSession, cancelling, afterward},

	{"homes: session not durable at connect", durableSession, twoServers, afterward},
	{"homes: session registered though not greater", registerIfGreater, twoServers, afterward},
	{"homes: sent without the compare-and-set", casBeforeSend, twoServers, afterward},
	{"homes: session not checked by the agent", sessionIsCurrent, twoServers, afterward},
	{"homes: generation not checked by the agent", genIsNewest, twoOps, disorder},
	{"homes: no INTENT before the effect", intentBeforeEffect, twoServers, wrong},
	{"homes: INTENT not synced", intentIsSynced, twoServers, wrong},
	{"homes: no TOMBSTONE on CANCEL", tombstoneOnCancel, twoServers, afterward},
	{"homes: INTENT without DONE run again", interruptedOnRecovery, twoServers, twice},
	{"homes: reconciled whatever session the row has", settleFromSession, twoServers, afterward},
	{"homes: withdrawn though dispatched", withdrawOnlyPending, twoServers, afterward},
	{"homes: tombstone forgotten in its session", tombstoneOutlivesAck, twoServers, afterward},
	{"homes: verdict acknowledged before it is recorded", ackAfterRecord, twoServers, wrong},
}
