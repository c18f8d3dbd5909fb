package api

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/enrol"
	"github.com/gozzard/gozzard/internal/upgrade"
)

// fileTimeout is the longest time for the transfer of a program.
const fileTimeout = 15 * time.Minute

const octets = "application/octet-stream"

// releases is the part of the server that has releases and runs upgrades.
func (a *api) releases() (*upgrade.Runner, error) {
	if a.Releases == nil {
		return nil, gozzard.Errorf(gozzard.ErrConflict, "this server has no releases, because it has no enrolled hosts "+
			"(start it with --agent-listen on an address of the network, or --enrol)")
	}
	return a.Releases, nil
}

// getReleases lists the releases that were published, newest first.
func (a *api) getReleases(w http.ResponseWriter, _ *http.Request, _ gozzard.Caller) error {
	releases, err := a.releases()
	if err != nil {
		return err
	}
	published, err := releases.Releases()
	if err != nil {
		return err
	}

	list := client.ReleaseList{Releases: make([]client.Release, 0, len(published))}
	for _, p := range published {
		list.Releases = append(list.Releases, renderRelease(p))
	}
	return answer(w, http.StatusOK, list)
}

// postRelease publishes a manifest. Its programs are uploaded afterwards, one by one.
func (a *api) postRelease(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	releases, err := a.releases()
	if err != nil {
		return err
	}
	var in client.PublishRequest
	if err := readValue(w, r, maxReleaseBody, &in); err != nil {
		return err
	}

	p, err := releases.Publish(r.Context(), caller, in.Manifest, in.Signature)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, renderRelease(p))
}

// putReleaseFile stores a program. It reads at most the size that the manifest has.
func (a *api) putReleaseFile(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	releases, err := a.releases()
	if err != nil {
		return err
	}
	if r.Header.Get("Content-Encoding") != "" {
		return errEncoded()
	}

	version, file := r.PathValue("version"), r.PathValue("file")
	extendDeadline(w)
	if err := releases.Upload(version, file, r.Body); err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.UploadedFile{Version: version, SHA256: file})
}

// extendDeadline gives the transfer of a program more time than other requests have.
func extendDeadline(w http.ResponseWriter) {
	// An error means that this connection has no deadline.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(fileTimeout))
}

// deleteRelease removes a release and its programs.
func (a *api) deleteRelease(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	releases, err := a.releases()
	if err != nil {
		return err
	}
	version := r.PathValue("version")
	if err := releases.Remove(r.Context(), caller, version); err != nil {
		return err
	}
	return answer(w, http.StatusOK, client.RemovedRelease{Version: version, State: "removed"})
}

// getReleaseFile sends a part of a release to an enrolled host. The certificate of the connection is its credential.
func (a *api) getReleaseFile(w http.ResponseWriter, r *http.Request, _ gozzard.Caller) error {
	if _, _, _, err := a.Enrol.Admit(r.TLS, r.Header.Get(enrol.MachineHeader)); err != nil {
		return &gozzard.Error{Kind: gozzard.ErrUnauthenticated,
			Message: "this host is not an active member of the fleet", Cause: err}
	}
	releases, err := a.releases()
	if err != nil {
		return err
	}

	// Send the manifest or its signature.
	version, name := r.PathValue("version"), r.PathValue("file")
	if name == "manifest" || name == "signature" {
		text, err := releases.Text(version, name == "signature")
		if err != nil {
			return err
		}
		sendAs(w, http.StatusOK, octets, text)
		return nil
	}

	// Send a program.
	f, err := releases.Program(version, name)
	if err != nil {
		return err
	}
	defer f.Close()
	return sendProgram(w, f)
}

// sendProgram sends a program to a host. It may take longer than other answers.
func sendProgram(w http.ResponseWriter, f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}

	extendDeadline(w)
	w.Header().Set("Content-Type", octets)
	w.Header().Set("Content-Length", strconv.FormatInt(st.Size(), 10))
	w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(w, f) // an error means that the host has closed the connection
	return nil
}

func renderRelease(p upgrade.Published) client.Release {
	out := client.Release{Version: p.Version, Created: client.At(p.Manifest.Created),
		Expires:   client.At(p.Manifest.Expires),
		Published: client.At(p.Published), By: p.By}
	missing := map[string]bool{}
	for _, f := range p.Missing {
		missing[f.SHA256] = true
	}
	for _, f := range p.Manifest.Files {
		out.Files = append(out.Files, client.ReleaseFile{Platform: f.Platform, Name: f.Name, Size: f.Size,
			SHA256: f.SHA256, Missing: missing[f.SHA256]})
	}
	return out
}
