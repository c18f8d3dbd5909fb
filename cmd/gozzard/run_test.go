package main

import "testing"

// TestFolderOfAnotherHost: the folder of a process on another host need not exist here.
func TestFolderOfAnotherHost(t *testing.T) {
	const folder = "/srv/shop-of-another-host"
	o, doc := runOptions{dir: folder, user: "www"}, map[string]any{}
	if err := o.place(doc, false); err != nil || doc["folder"] != folder {
		t.Errorf("the folder is %v, error %v", doc["folder"], err)
	}
	if err := o.place(doc, true); err == nil {
		t.Error("a folder that is missing on this host was accepted")
	}
}
