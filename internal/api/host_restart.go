package api

import (
	"net/http"
	"reflect"
	"time"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// postHostRestart restarts the agents of hosts. Their processes are not touched.
func (a *api) postHostRestart(w http.ResponseWriter, r *http.Request, caller gozzard.Caller) error {
	// Read the request and collect its faults.
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	op := &gozzard.Operation{Caller: caller, Door: Door, IdempotencyKey: key}
	var spec gozzard.RestartSpec
	s := &selection{}
	body, err := readRequest(w, r, maxOperationBody, func(root *strictjson.Value) {
		root.Only(fieldNames(reflect.TypeFor[client.HostRestartRequest]())...)
		spec = readRestart(root)
		a.readHosts(caller, root, s)
		confirm := root.Get("confirm")
		op.Confirm = int(confirm.OptInt(0, 1, maxList))
	})
	if err != nil {
		return err
	}
	op.RequestHash = requestHash(r, body)

	// Restart them.
	for i := range s.hosts {
		s.hosts[i].ResultKey = resultKey(s.hosts[i], gozzard.AgentKey())
	}
	op.Items = []gozzard.Item{gozzard.RestartItem(spec, s.hosts)}
	return a.accept(w, r, op)
}

// readRestart reads how agents restart.
func readRestart(root *strictjson.Value) gozzard.RestartSpec {
	version, wait, force, remark := root.Get("version"), root.Get("wait_seconds"), root.Get("force"), root.Get("remark")
	byDefault, most := int64(gozzard.DefaultRestartWait/time.Second), int64(gozzard.MaxRestartWait/time.Second)
	spec := gozzard.RestartSpec{Version: version.OptStr(), Wait: int(wait.OptInt(byDefault, 0, most)),
		Force: force.OptBool(false), Remark: remark.OptStr()}
	if err := spec.Validate(); err != nil {
		root.Fault("%s", err)
	}
	return spec
}
