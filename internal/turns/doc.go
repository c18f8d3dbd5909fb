// Package turns has a queue in which owners take turns: an owner with a thousand things waits for itself, not others for it.
package turns
