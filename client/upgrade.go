package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gozzard/gozzard"
)

// Upgrade brings a release to hosts, in stages.
type Upgrade struct {
	ID       int64         `json:"id"`
	Version  string        `json:"version"`
	Stages   []int         `json:"stages"` // percents of the hosts
	State    string        `json:"state"`  // waiting, running, done or stopped
	Reason   string        `json:"reason,omitempty"`
	Created  Time          `json:"created"`
	Changed  Time          `json:"changed"`
	By       string        `json:"by"`                 // the caller that created it
	Approved string        `json:"approved,omitempty"` // the caller that approved it
	Hosts    []UpgradeHost `json:"hosts"`
}

// UpgradeHost is one host of an upgrade.
type UpgradeHost struct {
	Agent  gozzard.AgentID `json:"agent"`
	Stage  int             `json:"stage"` // percent
	State  string          `json:"state"` // waiting, asked, done, offline, skipped or failed
	Reason string          `json:"reason,omitempty"`
}

// UpgradeList is the newest upgrades, newest first.
type UpgradeList struct {
	Upgrades []Upgrade `json:"rolls"`
}

// NewUpgrade is the body of POST /api/v1/rolls: the percents of the stages rise to 100. Without agents the upgrade
// covers every enrolled host that is online.
type NewUpgrade struct {
	Version string            `json:"version"`
	Stages  []int             `json:"stages,omitempty"`
	Agents  []gozzard.AgentID `json:"agents,omitempty"`
}

// UpgradeChange is the body of PUT /api/v1/rolls/{version}.
type UpgradeChange struct {
	State string `json:"state"` // approved or stopped
}

// Upgrades lists the newest upgrades, newest first.
func (c *Client) Upgrades(ctx context.Context, limit int) ([]Upgrade, error) {
	var out UpgradeList
	err := c.get(ctx, "/api/v1/rolls", url.Values{"limit": {strconv.Itoa(limit)}}, &out)
	return out.Upgrades, err
}

// CreateUpgrade starts to bring a release to hosts.
func (c *Client) CreateUpgrade(ctx context.Context, in NewUpgrade) (u Upgrade, err error) {
	err = c.write(ctx, http.MethodPost, "/api/v1/rolls", in, &u)
	return u, err
}

// SetUpgrade makes the open upgrade to a release "approved" or "stopped".
func (c *Client) SetUpgrade(ctx context.Context, version, state string) (u Upgrade, err error) {
	err = c.write(ctx, http.MethodPut, "/api/v1/rolls/"+url.PathEscape(version), UpgradeChange{state}, &u)
	return u, err
}
