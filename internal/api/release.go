package api

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/upgrade"
)

// maxReleaseBody bounds a manifest with its signature, in base64.
const maxReleaseBody = 128 << 10

// fileTime is how long a host may take for the program of a release.
const fileTime = 15 * time.Minute

const octets = "application/octet-stream"

func (a *api) runner() (*upgrade.Runner, error) {
	if a.Releases == nil {
		return nil, gozzard.Errorf(gozzard.ErrConflict,
			"this server keeps no releases: it serves no enrolled hosts (start it with --agent-listen on an address of the network, or --enrol)")
	}
	return a.Releases, nil
}

type releaseBody struct {
	Version   string            `json:"version"`
	Created   time.Time         `json:"created"`
	Expires   time.Time         `json:"expires"`
	Published time.Time         `json:"published"`
	By        string            `json:"by"`
	Files     []releaseFileBody `json:"files"`
}

type releaseFileBody struct {
	Platform string `json:"platform"`
	Name     string `json:"name"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
	Missing  bool   `json:"missing"` // not uploaded yet
}

func renderRelease(p upgrade.Published) releaseBody {
	b := releaseBody{Version: p.Version, Created: p.Manifest.Created.UTC(), Expires: p.Manifest.Expires.UTC(),
		Published: p.Published.UTC(), By: p.By}
	missing := map[string]bool{}
	for _, f := range p.Missing {
		missing[f.SHA256] = true
	}
	for _, f := range p.Manifest.Files {
		b.Files = append(b.Files, releaseFileBody{f.Platform, f.Name, f.Size, f.SHA256, missing[f.SHA256]})
	}
	return b
}

func (a *api) getReleases(w http.ResponseWriter, _ *http.Request, _ gozzard.Caller) error {
	releases, err := a.runner()
	if err != nil {
		return err
	}

	list, err := releases.Releases()
	if err != nil {
		return err
	}

	body := make([]releaseBody, 0, len(list))
	for _, p := range list {
		body = append(body, renderRelease(p))
	}

	return answer(w, http.StatusOK, map[string]any{"releases": body})
}

// postRelease publishes a manifest; its programs follow one by one.
func (a *api) postRelease(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	releases, err := a.runner()
	if err != nil {
		return err
	}

	var in struct {
		Manifest  []byte `json:"manifest"`
		Signature []byte `json:"signature"`
	}
	if err := readStrict(w, r, maxReleaseBody, &in); err != nil {
		return err
	}

	p, err := releases.Publish(r.Context(), caller, in.Manifest, in.Signature)
	if err != nil {
		return err
	}

	return answer(w, http.StatusOK, renderRelease(p))
}

// putReleaseFile takes a program as it is. Never more is read than its manifest says.
func (a *api) putReleaseFile(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	releases, err := a.runner()
	if err != nil {
		return err
	}
	if r.Header.Get("Content-Encoding") != "" {
		return gozzard.Errorf(gozzard.ErrInvalid, "Content-Encoding is not accepted: send the body as it is")
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(fileTime)) // not supported by recorders of tests
	if err := releases.Upload(r.PathValue("version"), r.PathValue("file"), r.Body); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"version": r.PathValue("version"), "sha256": r.PathValue("file")})
}

func (a *api) deleteRelease(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	releases, err := a.runner()
	if err != nil {
		return err
	}
	if err := releases.Remove(r.Context(), caller, r.PathValue("version")); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"version": r.PathValue("version"), "state": "removed"})
}

// getReleaseFile hands a release on to a member. The certificate of the connection is its credential.
func (a *api) getReleaseFile(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	if _, _, _, err := a.Enrol.Admit(r.TLS, r.Header.Get(enrol.MachineHeader)); err != nil {
		return &gozzard.Error{Kind: gozzard.ErrUnauthenticated,
			Message: "this host is not a member of the fleet, or not any more", Cause: err}
	}

	releases, err := a.runner()
	if err != nil {
		return err
	}

	version, name := r.PathValue("version"), r.PathValue("file")
	if name == "manifest" || name == "signature" {
		text, err := releases.Text(version, name == "signature")
		if err != nil {
			return err
		}
		sendAs(w, http.StatusOK, octets, text)
		return nil
	}

	f, err := releases.Program(version, name)
	if err != nil {
		return err
	}

	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}

	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(fileTime))
	w.Header().Set("Content-Type", octets)
	w.Header().Set("Content-Length", strconv.FormatInt(st.Size(), 10))
	w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(w, f) // who has gone is nobody to tell
	return nil
}

type rollBody struct {
	ID       int64          `json:"id"`
	Version  string         `json:"version"`
	Stages   []int          `json:"stages"`
	State    upgrade.State  `json:"state"`
	Reason   string         `json:"reason,omitempty"`
	Created  time.Time      `json:"created"`
	Changed  time.Time      `json:"changed"`
	By       string         `json:"by"`
	Approved string         `json:"approved,omitempty"`
	Hosts    []rollHostBody `json:"hosts"`
}

type rollHostBody struct {
	Agent  gozzard.AgentID   `json:"agent"`
	Stage  int               `json:"stage"` // percent
	State  upgrade.HostState `json:"state"`
	Reason string            `json:"reason,omitempty"`
}

func renderRoll(r *upgrade.Upgrade) rollBody {
	b := rollBody{ID: r.ID, Version: r.Version, Stages: r.Stages, State: r.State, Reason: r.Reason,
		Created: r.Created.UTC(), Changed: r.Changed.UTC(), By: r.By,
		Approved: r.Approved, Hosts: make([]rollHostBody, 0, len(r.Hosts))}
	for _, h := range r.Hosts {
		b.Hosts = append(b.Hosts, rollHostBody{h.Agent, r.Stages[min(h.Stage, len(r.Stages)-1)], h.State, h.Reason})
	}
	return b
}

func (a *api) getRolls(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	releases, err := a.runner()
	if err != nil {
		return err
	}

	q, err := readQuery(r, "limit")
	if err != nil {
		return err
	}

	limit := q.number("limit", 1, 1, 100)

	if err := q.faults.Err(); err != nil {
		return err
	}

	list, err := releases.Upgrades(r.Context(), limit)
	if err != nil {
		return err
	}

	body := make([]rollBody, 0, len(list))
	for i := range list {
		body = append(body, renderRoll(&list[i]))
	}

	return answer(w, http.StatusOK, map[string]any{"rolls": body})
}

func (a *api) postRoll(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	releases, err := a.runner()
	if err != nil {
		return err
	}

	var in struct {
		Version string            `json:"version"`
		Stages  []int             `json:"stages"`
		Agents  []gozzard.AgentID `json:"agents"`
	}
	if err := readStrict(w, r, maxRollBody, &in); err != nil {
		return err
	}

	got, err := releases.Create(r.Context(), caller,
		upgrade.Request{Version: in.Version, Stages: in.Stages, Agents: in.Agents})
	if err != nil {
		return err
	}

	return answer(w, http.StatusCreated, renderRoll(&got))
}

// maxRollBody: the names of all hosts fit.
const maxRollBody = 8 << 20

// putRoll approves or stops the open roll of a release.
func (a *api) putRoll(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	releases, err := a.runner()
	if err != nil {
		return err
	}

	var in struct {
		State string `json:"state"`
	}
	if err := readEnrol(w, r, &in); err != nil {
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

	return answer(w, http.StatusOK, renderRoll(&got))
}
