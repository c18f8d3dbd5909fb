//go:build !unix

package seal

// onlyOwner has nothing to look at: the folder's own list says who may read.
func onlyOwner(string) error { return nil }

// syncDir has nothing to do: folders cannot be synced here.
func syncDir(string) error { return nil }
