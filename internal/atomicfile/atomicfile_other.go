//go:build !unix

package atomicfile

// Check has nothing to look at: the folder's own list says who may read.
func Check(string) error { return nil }

// SyncFolder has nothing to do: folders cannot be synced here, the file system journals names.
func SyncFolder(string) error { return nil }
