package gse

import (
	"fmt"
	"math"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/auth"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// actionOf is the table of op_type. The numbers 5 and 6 were constants of one client and have no meaning.
func actionOf(opType int64) (gozzard.Action, bool) {
	switch opType {
	case 0:
		return gozzard.ActionStart, true
	case 1:
		return gozzard.ActionStop, true
	case 2:
		return gozzard.ActionQuery, true
	case 3:
		return gozzard.ActionHost, true
	case 4:
		return gozzard.ActionUnhost, true
	case 7:
		return gozzard.ActionRestart, true
	case 8:
		return gozzard.ActionReload, true
	case 9:
		return gozzard.ActionKill, true
	}
	return gozzard.ActionNone, false
}

func unknownOpType(n int64) string {
	return fmt.Sprintf("%d is no operation (0 start, 1 stop, 2 query, 3 host, 4 unhost, 7 restart, 8 reload, 9 kill)",
		n)
}

// readOpType reads op_type, which is required. ok is false if the number has no meaning. A missing op_type or one of
// another type is a fault.
func readOpType(item *strictjson.Value, app auth.App) (n int64, action gozzard.Action, ok bool) {
	v := item.Get("op_type")
	if !v.Exists() && app.MissingActionMeansStart {
		return 0, gozzard.ActionStart, true
	}
	before := item.Faults().Len()
	n = v.Int(math.MinInt64, math.MaxInt64)
	if item.Faults().Len() > before {
		return 0, gozzard.ActionNone, true
	}
	action, ok = actionOf(n)
	return n, action, ok
}
