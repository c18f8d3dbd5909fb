//go:build !failpoint

package agentd

// failpoint is nothing in the program people run; fault tests build with the tag "failpoint".
func failpoint() func(string) { return nil }
