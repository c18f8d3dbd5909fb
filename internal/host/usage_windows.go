package host

import "github.com/gozzard/gozzard"

// Usage is not measured on Windows, which has no load average.
func (h *Host) Usage() (load, memFree int64) { return gozzard.NotMeasured, gozzard.NotMeasured }
