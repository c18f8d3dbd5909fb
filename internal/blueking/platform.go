package blueking

// PlatformApps are the apps of the platform that act on the whole fleet at once, by their codes.
func PlatformApps() map[string]bool {
	return map[string]bool{"bk_nodeman": true, "bk_gsekit": true, "bk_bscp": true, "bk_job": true, "bk_sops": true}
}
