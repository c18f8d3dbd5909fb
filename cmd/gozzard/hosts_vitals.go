package main

import (
	"math"
	"strconv"
	"time"

	"github.com/gozzard/gozzard/client"
)

// isSkewed reports whether a clock is so far from the server's that people must know.
func isSkewed(skew *float64) bool { return skew != nil && math.Abs(*skew) >= client.MaxClockSkew }

// skewText is the difference of a clock. A small one is shown only with all: it may come from the network.
func skewText(skew *float64, all bool) string {
	if skew == nil || !all && !isSkewed(skew) {
		return ""
	}

	word := " ahead"
	if *skew < 0 {
		word = " behind"
	}
	off := math.Abs(*skew)
	if off < client.MaxClockSkew {
		return strconv.FormatFloat(off, 'f', 1, 64) + "s" + word
	}
	return shortDuration(time.Duration(off)*time.Second) + word
}

// loadText is the load of a processor; "" when it is not known.
func loadText(load *float64) string {
	if load == nil {
		return ""
	}
	return strconv.FormatFloat(*load, 'f', 2, 64)
}

// freeText is the free memory of a host; "" when it is not known.
func freeText(free *int64) string {
	if free == nil {
		return ""
	}
	return mebibytes(*free)
}
