package gozzard

import (
	"strconv"
	"strings"
)

// The namespaces of a business begin with one of these words. They are stored with every definition, written in grants
// and visible to callers, so they cannot change.
const (
	topologyPrefix = "GSEKIT_BIZ_" // processes of the business's topology
	scriptPrefix   = "JOB_BIZ_"    // processes that BlueKing Job registers
)

// BusinessNamespace is the namespace of the processes of a business's topology.
func BusinessNamespace(biz int) string { return topologyPrefix + strconv.Itoa(biz) }

// BusinessNamespaces are all namespaces of a business.
func BusinessNamespaces(biz int) []string {
	return []string{BusinessNamespace(biz), scriptPrefix + strconv.Itoa(biz)}
}

// BusinessOf is the business to which a namespace belongs. ok is false for a namespace of no business.
func BusinessOf(namespace string) (biz int, ok bool) {
	for _, prefix := range []string{topologyPrefix, scriptPrefix} {
		if text, found := strings.CutPrefix(namespace, prefix); found {
			n, err := strconv.Atoi(text)
			return n, err == nil && n > 0 && strconv.Itoa(n) == text
		}
	}
	return 0, false
}
