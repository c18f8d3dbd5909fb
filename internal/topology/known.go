package topology

import (
	"fmt"

	"github.com/gozzard/gozzard"
)

// shown is an unknown key, shortened and quoted where a message needs it.
func shown(key string) string {
	if len(key) <= 40 && gozzard.ValidateName(key) == nil {
		return key
	}
	return fmt.Sprintf("%.40q", key)
}
