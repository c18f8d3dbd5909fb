// Package identity tests through the built program which live process belongs to a definition: what the agent started
// stays its own, and what it did not start is never touched.
package identity
