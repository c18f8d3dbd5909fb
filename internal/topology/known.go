package topology

import (
	"fmt"

	"github.com/gozzard/gozzard"
)

// shown is an unknown key in a form and length that fit into a message.
func shown(key string) string {
	if len(key) <= 40 && gozzard.ValidateName(key) == nil {
		return key
	}
	return fmt.Sprintf("%.40q", key)
}
