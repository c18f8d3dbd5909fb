//go:build !unix

package atomicfile

// Check does nothing: the access list of the folder protects its files.
func Check(string) error { return nil }

// CheckOwned does nothing, like Check.
func CheckOwned(string) error { return nil }

// SyncFolder does nothing: folders cannot be synced here, and the file system journals names.
func SyncFolder(string) error { return nil }
