package gozzard_test

import "github.com/gozzard/gozzard/test/explore"

// result is the result of an exploration of the protocol.
type result struct {
	explore.Result

	moves     moves
	disagrees string
}

// exploreProtocol visits every reachable world of a configuration. Each must be able to reach a verdict for every attempt
// when no more faults happen.
func exploreProtocol(c config) result {
	m := &model{config: c}
	r := explore.All(m, "without further faults some attempt never gets a verdict")
	return result{Result: r, moves: m.moves, disagrees: m.disagrees}
}
