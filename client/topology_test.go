package client_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/client"
)

func TestTopology(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		said := r.Method + " " + r.URL.RequestURI()
		switch said {
		case "GET /api/v1/topology":
			_, _ = io.WriteString(w,
				`{"count":1,"businesses":[{"biz":2,"name":"蓝鲸","version":3,"source":"cmdb","at":"2024-01-02T03:04:05Z"}]}`)
		case "PUT /api/v1/topology/2?dry_run=true&prune=true&take_over=true&version=0":
			if string(body) != "biz: 2\n" || r.Header.Get("Content-Type") != "application/yaml" {
				t.Errorf("document is %s as %s", body, r.Header.Get("Content-Type"))
			}
			_, _ = io.WriteString(w,
				`{"biz":2,"version":3,"dry_run":true,"plan":{"added":[{"kind":"set","id":5,"name":"x"}],"changed":[],"removed":[]},"managed":1}`)
		case "PUT /api/v1/topology/3":
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w,
				`{"error":{"kind":"conflict","message":"hosted","faults":[{"path":"a.b","text":"runs"}]}}`)
		case "GET /api/v1/topology/2":
			if r.Header.Get("Accept") == "application/yaml" {
				_, _ = io.WriteString(w, "biz: 2\n")
			} else {
				_, _ = io.WriteString(w, `{"biz":2}`)
			}
		case "GET /api/v1/topology/2/tree?env=3":
			_, _ = io.WriteString(w,
				`{"biz":2,"name":"蓝鲸","counts":{"processes":7},"sets":[{"id":5,"env":3,"modules":[{"id":21,"services":2}]}]}`)
		default:
			t.Errorf("asked for %s", said)
		}
	})

	ctx := t.Context()
	if list, err := c.Businesses(ctx); err != nil || list.Count != 1 || list.Businesses[0].Name != "蓝鲸" ||
		list.Businesses[0].At.Year() != 2024 {
		t.Errorf("%+v %v", list, err)
	}

	none := int64(0)
	if a, err := c.ApplyTopology(ctx, 2, []byte("biz: 2\n"),
		client.ApplyOptions{DryRun: true, Prune: true, TakeOver: true, Version: &none}); err != nil ||
		a.Plan.Empty() || a.Managed != 1 || !a.DryRun {
		t.Errorf("%+v %v", a, err)
	}

	if _, err := c.ApplyTopology(ctx, 3, []byte("biz: 3\n"),
		client.ApplyOptions{}); gozzard.KindOf(err) != gozzard.ErrConflict ||
		!strings.Contains(err.Error(), "a.b: runs") {
		t.Error(err)
	}

	if doc, err := c.Topology(ctx, 2); err != nil || string(doc) != "biz: 2\n" {
		t.Errorf("%s %v", doc, err)
	}
	if doc, err := c.TopologyJSON(ctx, 2); err != nil || string(doc) != `{"biz":2}` {
		t.Errorf("%s %v", doc, err)
	}
	if tree, err := c.Tree(ctx, 2, "3"); err != nil || tree.Counts.Processes != 7 ||
		tree.Sets[0].Modules[0].Services != 2 {
		t.Errorf("%+v %v", tree, err)
	}
}

func TestBusinessSelection(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)

		if r.Method == http.MethodGet {
			const want = "biz=2&env=3&expression=a.%2A.%2A.%2A.%2A&limit=5&module=21&name=x&set=a&set=b&start=0"
			if r.URL.RawQuery != want {
				t.Errorf("query is %s", r.URL.RawQuery)
			}
			_, _ = io.WriteString(w,
				`{"count":9,"processes":[{"name":"x_1","topology":{"biz":2,"local_inst_id":1,"inst_id":4}}],"next":5}`)
			return
		}

		const want = `{"action":"stop","biz":2,"env":"3","sets":["a","b"],"modules":["21"],"expression":"a.*.*.*.*"}`
		if string(body) != want {
			t.Errorf("request is %s", body)
		}

		_, _ = io.WriteString(w, `{"task_id":"GSETASK:20240102030405:1","targets":1}`)
	})

	s := client.BusinessSelection{Biz: 2, Env: "3", Sets: []string{"a", "b"}, Modules: []string{"21"},
		Expression: "a.*.*.*.*"}
	if p, err := c.Processes(t.Context(), client.ProcessQuery{BusinessSelection: s, Names: []string{"x"}}, 0, 5); err != nil ||
		p.Next != 5 || p.Processes[0].Topology.Inst != 4 {
		t.Errorf("%+v %v", p, err)
	}

	if _, err := c.Operate(t.Context(), client.Operation{Action: "stop",
		Selection: client.Selection{BusinessSelection: s}}); err != nil {
		t.Error(err)
	}
}
