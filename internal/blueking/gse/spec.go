package gse

import (
	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/specjson"
	"github.com/gozzard/gozzard/internal/strictjson"
)

// optSpec reads a definition, nil when there is none: one client sends five empty objects for that. Where a command
// will run, the identity must be complete; elsewhere real clients leave most of it empty.
func optSpec(v strictjson.Value, complete bool) *gozzard.Spec {
	if !v.OptObject() || v.Hollow() {
		return nil
	}
	return specjson.ReadSpec(v, specjson.Rules{Complete: complete})
}

// mustSpec reads a definition that must be there.
func mustSpec(v strictjson.Value, complete bool) *gozzard.Spec {
	if v.IsObject() && v.Hollow() {
		v.Fault("required, is empty")
		return nil
	}
	return specjson.ReadSpec(v, specjson.Rules{Complete: complete})
}
