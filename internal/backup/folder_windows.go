package backup

import "golang.org/x/sys/windows"

// FreeSpace is how many bytes this account can still write in a folder.
func FreeSpace(dir string) (free uint64, err error) {
	p, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	err = windows.GetDiskFreeSpaceEx(p, &free, nil, nil)
	return free, err
}
