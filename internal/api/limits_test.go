package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
)

const limited = `{"namespace":"shop","name":"web","hosts":[{"agent":"a1"}],"spec":{"identity":{"proc_name":"web","setup_path":"/opt"},"resource":RESOURCE,"monitor_policy":POLICY}}`

func (s *server) put(resource, policy string) reply {
	return s.call(http.MethodPut, "/api/v1/processes",
		strings.NewReplacer("RESOURCE", resource, "POLICY", policy).Replace(limited))
}

func TestLimitsAndHealth(t *testing.T) {
	s := newServer(t)
	if r := s.put(`{"cpu":5,"act":"stop","samples":2,"enforce":true}`,
		`{"health_interval":9,"health_timeout":8,"health_threshold":7,"health_restart":true,"time_zone":"UTC","overlap":"skip"}`); r.code >= 300 {
		t.Fatalf("%d %s", r.code, r.body)
	}

	spec := s.last(t).Items[0].Spec
	if spec.Resource != (gozzard.Resource{CPU: 5, Act: gozzard.ActStop, Samples: 2, Enforce: true}) {
		t.Errorf("%+v", spec.Resource)
	}
	if p := spec.Policy; p.HealthInterval != 9 || p.HealthTimeout != 8 || p.HealthThreshold != 7 ||
		!p.HealthRestart || p.TimeZone != "UTC" || p.Overlap != gozzard.OverlapSkip {
		t.Errorf("%+v", p)
	}

	for resource, want := range map[string]string{`{"act":"x"}`: "spec.resource.act",
		`{"actt":"kill"}`: `did you mean \"act\"`, `{"samples":1.5}`: "spec.resource.samples"} {
		if r := s.put(resource, `{}`); r.code != http.StatusBadRequest || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", resource, r.code, r.body)
		}
	}

	for policy, want := range map[string]string{`{"time_zone":"Nowhere"}`: "spec.monitor_policy.time_zone",
		`{"overlap":"x"}`:                        "spec.monitor_policy.overlap",
		`{"auto_type":0,"crontab_rule":"* * *"}`: "is not a crontab rule: it has 3 fields, not 5"} {
		if r := s.put(`{}`, policy); r.code != http.StatusBadRequest || !strings.Contains(r.body, want) {
			t.Errorf("%s: %d %s", policy, r.code, r.body)
		}
	}
}
