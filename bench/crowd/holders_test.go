//go:build linux

package crowd

import "testing"

func TestHoldersSettle(t *testing.T) {
	h := Holders{heldStacks: 30, heldClients: 20}
	h.Settle(80)
	if h[heldGarbage] != 30 {
		t.Errorf("garbage %d, want what is left of 80", h[heldGarbage])
	}
	if h.Settle(80); h[heldGarbage] != 30 {
		t.Errorf("garbage %d the second time", h[heldGarbage])
	}
	if h.Settle(10); h[heldGarbage] != 0 {
		t.Errorf("garbage %d of less than nothing", h[heldGarbage])
	}
}
