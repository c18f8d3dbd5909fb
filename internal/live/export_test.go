package live

// Tick does at once what Run does four times a second.
func (h *Hub) Tick() { h.tick() }

// RingBytes is what the audience of a view keeps for viewers that come back.
func (v *View) RingBytes() int {
	v.a.ring.mu.Lock()
	defer v.a.ring.mu.Unlock()
	return v.a.ring.bytes
}

// The bounds of the ring.
const (
	RingLeast = ringLeast
	RingMost  = ringMost
)

// Epoch is the epoch of the audience.
func (v *View) Epoch() string {
	v.a.ring.mu.Lock()
	defer v.a.ring.mu.Unlock()
	return v.a.ring.epoch
}
