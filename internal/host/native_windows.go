package host

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// The system calls that golang.org/x/sys does not offer. Each is looked up when it is first used.
var (
	kernel32              = windows.NewLazySystemDLL("kernel32.dll")
	openJobObject         = kernel32.NewProc("OpenJobObjectW")
	isProcessInJob        = kernel32.NewProc("IsProcessInJob")
	registerWaitForObject = kernel32.NewProc("RegisterWaitForSingleObject")
	unregisterWait        = kernel32.NewProc("UnregisterWaitEx")
	globalMemoryStatus    = kernel32.NewProc("GlobalMemoryStatusEx")
	ntResumeProcess       = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")
)

const (
	jobQuery     = 0x4      // JOB_OBJECT_QUERY
	jobAllAccess = 0x1F001F // JOB_OBJECT_ALL_ACCESS

	waitOnce     = 0x8 // WT_EXECUTEONLYONCE
	waitInThread = 0x4 // WT_EXECUTEINWAITTHREAD: the callback is short
)

// openJob opens a job by its name; windows.ERROR_FILE_NOT_FOUND means that there is none.
func openJob(name *uint16) (windows.Handle, error) {
	r, _, err := openJobObject.Call(jobAllAccess, 0, uintptr(unsafe.Pointer(name)))
	if r == 0 {
		return 0, err
	}
	return windows.Handle(r), nil
}

// inJob reports whether a process is in any job.
func inJob(process windows.Handle) (bool, error) {
	var in int32
	r, _, err := isProcessInJob.Call(uintptr(process), 0, uintptr(unsafe.Pointer(&in)))
	if r == 0 {
		return false, os.NewSyscallError("IsProcessInJob", err)
	}
	return in != 0, nil
}

// resume continues a process that was started suspended.
func resume(process windows.Handle) error {
	if status, _, _ := ntResumeProcess.Call(uintptr(process)); status != 0 {
		return os.NewSyscallError("NtResumeProcess", windows.NTStatus(status))
	}
	return nil
}

// registerWait makes the system call callback(id) once, when the process ends. windows.NewCallback makes the callback.
func registerWait(process windows.Handle, callback, id uintptr) (windows.Handle, error) {
	var wait windows.Handle
	r, _, err := registerWaitForObject.Call(uintptr(unsafe.Pointer(&wait)), uintptr(process), callback, id,
		windows.INFINITE, waitOnce|waitInThread)
	if r == 0 {
		return 0, os.NewSyscallError("RegisterWaitForSingleObject", err)
	}
	return wait, nil
}

// endWait ends a registered wait and waits for its callback, so that the handle of the process may be closed.
func endWait(wait windows.Handle) error {
	if r, _, err := unregisterWait.Call(uintptr(wait), uintptr(windows.InvalidHandle)); r == 0 {
		return os.NewSyscallError("UnregisterWaitEx", err)
	}
	return nil
}

// memoryTotal is how much memory the machine has.
func memoryTotal() (int64, error) {
	status := struct { // MEMORYSTATUSEX
		length, load uint32
		total        uint64
		_            [6]uint64
	}{}
	status.length = uint32(unsafe.Sizeof(status))
	if r, _, err := globalMemoryStatus.Call(uintptr(unsafe.Pointer(&status))); r == 0 {
		return 0, fmt.Errorf("cannot read size of memory: %w", err)
	}
	return int64(status.total), nil
}
