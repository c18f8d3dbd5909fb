package fleettest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// timeForm is the one form of a time in answers of our own API.
var timeForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// timeLike finds texts that begin as a time does, in whatever form.
var timeLike = regexp.MustCompile(`^\d{4}-\d\d-\d\d([T ]\d\d:\d\d|$)`)

// IsTimeKey reports whether a key of an answer is that of a time.
func IsTimeKey(key string) bool {
	return strings.HasSuffix(key, "_at") || slices.Contains([]string{"at", "since", "until", "created", "expires",
		"published", "enrolled", "not_after", "made", "last_seen", "last_start", "restored_from"}, key)
}

// FaultsOfForm finds what in a JSON document of our own API does not have the form of ADR 0048: times that are numbers or
// have other digits, hosts that are not an object of agent, cloud and ip, and the word hosted. Documents that people
// wrote are not judged: definitions and businesses.
func FaultsOfForm(doc []byte) (faults []string) {
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		return []string{err.Error()}
	}
	walkForm(v, "answer", &faults)
	return faults
}

func walkForm(v any, place string, faults *[]string) {
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			walkForm(e, fmt.Sprintf("%s[%d]", place, i), faults)
		}

	case map[string]any:
		walkHost(v, place, faults)
		for key, e := range v {
			if key == "document" || key == "definitions" && place != "answer" || key == "labels" || key == "spec" {
				continue // of people
			}
			if key == "hosted" || key == "hosted_instances" {
				*faults = append(*faults, place+" says "+key+", not managed")
			}
			if text, isText := e.(string); IsTimeKey(key) && e != nil && (!isText || !timeForm.MatchString(text)) {
				*faults = append(*faults, fmt.Sprintf("%s.%s is %v, which is not the form of a time", place, key, e))
			}
			walkForm(e, place+"."+key, faults)
		}

	case string:
		if timeLike.MatchString(v) && !timeForm.MatchString(v) {
			*faults = append(*faults, fmt.Sprintf("%s is %q, which is not the form of a time", place, v))
		}
	}
}

// walkHost judges an object that names a host.
func walkHost(v map[string]any, place string, faults *[]string) {
	if host, ok := v["host"]; ok {
		object, isObject := host.(map[string]any)
		if !isObject {
			*faults = append(*faults, fmt.Sprintf("%s.host is %v, not an object", place, host))
		} else if len(object) != 3 || object["agent"] == nil || object["cloud"] == nil || object["ip"] == nil {
			*faults = append(*faults, fmt.Sprintf("%s.host is %v, not agent, cloud and ip", place, object))
		}
	}

	_, address := v["ip"]
	isHost := strings.HasSuffix(place, ".host") || strings.Contains(place, ".hosts[") || strings.Contains(place, ".addrs[")
	if address && !isHost {
		*faults = append(*faults, place+" has an ip, which belongs into host")
	}
}
