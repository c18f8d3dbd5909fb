package gozzard

import (
	"fmt"
	"time"
)

// Spending is an amount that counts against a quota of an hour. Several servers share such a quota: the record counts it, in the
// transaction of what it is for.
type Spending struct {
	Name  string // of the quota
	N     int
	Quota int  // in an hour; above 0
	Force bool // it counts, also if too little is left
}

// OverQuota is why a write with a list of Spending was rejected: a quota has too little left. Nothing of it was done or counted.
type OverQuota struct {
	Index int           // of the quota in the list
	Wait  time.Duration // until enough is left
}

func (e *OverQuota) Error() string { return fmt.Sprintf("a quota has enough left in %s", e.Wait) }
