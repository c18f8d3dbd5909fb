//go:build !unix

package enrol

// syncFolder has nothing to do: folders cannot be synced on this system.
func syncFolder(string) error { return nil }
