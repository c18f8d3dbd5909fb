package agentd

import "os/user"

// systemSID is the Windows account that may do everything.
const systemSID = "S-1-5-18"

// isRoot reports whether an account of this host may do everything under another name than root. An account that does
// not exist runs nothing.
func isRoot(account string) bool {
	u, err := user.Lookup(account)
	return err == nil && (u.Uid == "0" || u.Uid == systemSID)
}
