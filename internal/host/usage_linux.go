package host

import "github.com/gozzard/gozzard"

// Usage is the load average of the last minute in thousandths and the memory that programs could still get, in bytes.
// What cannot be read is gozzard.NotMeasured.
func (h *Host) Usage() (load, memFree int64) {
	load, err := h.proc.Load()
	if err != nil {
		load = gozzard.NotMeasured
	}
	memFree, err = h.proc.MemAvailable()
	if err != nil {
		memFree = gozzard.NotMeasured
	}
	return load, memFree
}
