package api

import (
	"net/http"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/upgrade"
)

// maxUpgrades is the largest number of upgrades in one answer.
const maxUpgrades = 100

// getUpgrades lists the newest upgrades, newest first.
func (a *api) getUpgrades(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	releases, err := a.releases()
	if err != nil {
		return err
	}
	q, err := a.readQuery(r)
	if err != nil {
		return err
	}
	limit := q.number("limit", 1, 1, maxUpgrades)
	if err := q.faults.Err(); err != nil {
		return err
	}

	upgrades, err := releases.Upgrades(r.Context(), limit)
	if err != nil {
		return err
	}
	list := client.UpgradeList{Upgrades: make([]client.Upgrade, 0, len(upgrades))}
	for i := range upgrades {
		list.Upgrades = append(list.Upgrades, renderUpgrade(&upgrades[i]))
	}

	return answer(w, http.StatusOK, list)
}

// postUpgrade starts to bring a release to hosts.
func (a *api) postUpgrade(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	releases, err := a.releases()
	if err != nil {
		return err
	}
	var in client.NewUpgrade
	if err := readValue(w, r, maxUpgradeBody, &in); err != nil {
		return err
	}

	got, err := releases.Create(r.Context(), caller,
		upgrade.Request{Version: in.Version, Stages: in.Stages, Agents: in.Agents})
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, renderUpgrade(&got))
}

// putUpgrade approves or stops the open upgrade to a release.
func (a *api) putUpgrade(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	releases, err := a.releases()
	if err != nil {
		return err
	}
	var in client.UpgradeChange
	if err := readValue(w, r, maxShortBody, &in); err != nil {
		return err
	}

	var got upgrade.Upgrade
	switch in.State {
	case "approved":
		got, err = releases.Approve(r.Context(), caller, r.PathValue("version"))
	case "stopped":
		got, err = releases.Stop(r.Context(), caller, r.PathValue("version"))
	default:
		err = &gozzard.Error{Kind: gozzard.ErrInvalid,
			Faults: []gozzard.Fault{{Path: "state", Text: `must be "approved" or "stopped"`}}}
	}
	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, renderUpgrade(&got))
}

func renderUpgrade(u *upgrade.Upgrade) client.Upgrade {
	out := client.Upgrade{ID: u.ID, Version: u.Version, Stages: u.Stages, State: string(u.State), Reason: u.Reason,
		Created: client.At(u.Created), Changed: client.At(u.Changed), By: u.By, Approved: u.Approved,
		Hosts: make([]client.UpgradeHost, 0, len(u.Hosts))}
	for _, h := range u.Hosts {
		out.Hosts = append(out.Hosts, client.UpgradeHost{Agent: h.Agent, State: string(h.State), Reason: h.Reason,
			Stage: u.Stages[min(h.Stage, len(u.Stages)-1)]})
	}
	return out
}
