package gse

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// optSpec reads an optional definition. One client sends five empty objects for none. If a command will run, the
// identity must be complete; otherwise real clients leave most of it empty.
func optSpec(v strictjson.Value, complete bool) *gozzard.Spec {
	if !v.OptObject() || v.Hollow() {
		return nil
	}
	return specjson.ReadSpec(v, specjson.Rules{Complete: complete})
}

// mustSpec reads a required definition.
func mustSpec(v strictjson.Value, complete bool) *gozzard.Spec {
	return requiredSpec(v, specjson.Rules{Complete: complete})
}

// namedSpec reads the definition of a call that registers a process. bk-cmdb 3.2 sends neither user nor proc_name.
func namedSpec(v strictjson.Value, name string) *gozzard.Spec {
	return requiredSpec(v, specjson.Rules{Complete: true, Name: name})
}

func requiredSpec(v strictjson.Value, rules specjson.Rules) *gozzard.Spec {
	if v.IsObject() && v.Hollow() {
		v.Fault("required, is empty")
		return nil
	}
	return specjson.ReadSpec(v, rules)
}
