package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/supervise"
)

const clearWait = 5 * time.Second // how long killed processes may take to end

// jobs are the job objects of this agent's processes, one for each key: all that a process's commands start and
// leave behind is in it, children of children included. None of them ends its members when it is closed, so that
// the agent going away touches nobody.
//
// The name is how an agent that starts again finds the members. Windows forgets a name with the last handle of its
// object, even while it has members; therefore the commands inherit a handle that can only ask, pass it on to what
// they start, and a process that was found is given one.
type jobs struct {
	prefix  string
	access  *windows.SecurityAttributes // of jobs that are made: for this account, administrators and the system
	trusted []*windows.SID              // accounts that may own an existing job

	mu    sync.Mutex // held during every use of a handle
	byKey map[gozzard.Key]*job
}

type job struct {
	handle windows.Handle
	claims int            // commands being started or in flight, which may need it while it has no members
	holder supervise.Proc // was given a handle
}

func newJobs(instance string) (*jobs, error) {
	self, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, fmt.Errorf("cannot read own account: %w", err)
	}

	sid := self.User.Sid.String()
	sd, err := windows.SecurityDescriptorFromString("O:" + sid + "D:P(A;;GA;;;SY)(A;;GA;;;BA)(A;;GA;;;" + sid + ")")
	if err != nil {
		return nil, fmt.Errorf("cannot set the permissions of jobs: %w", err)
	}

	j := &jobs{prefix: `Global\gozzard-` + instance + "-", trusted: []*windows.SID{self.User.Sid},
		byKey: map[gozzard.Key]*job{}}
	j.access = &windows.SecurityAttributes{Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})),
		SecurityDescriptor: sd}
	for _, kind := range []windows.WELL_KNOWN_SID_TYPE{windows.WinLocalSystemSid, windows.WinBuiltinAdministratorsSid} {
		sid, err := windows.CreateWellKnownSid(kind)
		if err != nil {
			return nil, fmt.Errorf("cannot make well-known account: %w", err)
		}
		j.trusted = append(j.trusted, sid)
	}

	return j, nil
}

// close forgets all jobs. Their members keep running.
func (j *jobs) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	for k, x := range j.byKey {
		errs = append(errs, windows.CloseHandle(x.handle))
		delete(j.byKey, k)
	}
	return errors.Join(errs...)
}

// name hashes the key, so that names of any script and length become a valid and neutral name.
func (j *jobs) name(k gozzard.Key) (*uint16, error) {
	sum := sha256.Sum256([]byte(k.Namespace + "\x00" + k.Name))
	return windows.UTF16PtrFromString(j.prefix + hex.EncodeToString(sum[:16]))
}

// get gives the job of a key, nil when there is none and it is not to be made. The caller holds mu.
func (j *jobs) get(k gozzard.Key, make bool) (*job, error) {
	if x := j.byKey[k]; x != nil {
		return x, nil
	}

	name, err := j.name(k)
	if err != nil {
		return nil, fmt.Errorf("cannot name job: %w", err)
	}

	var h windows.Handle

	if make {
		h, err = windows.CreateJobObject(j.access, name) // or opens the one that is there
	} else if h, err = openJob(name); errors.Is(err, windows.ERROR_FILE_NOT_FOUND) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("cannot open job %s: %w", windows.UTF16PtrToString(name), err)
	}
	if err := j.checkOwner(h); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot use job %s: %w", windows.UTF16PtrToString(name), err),
			windows.CloseHandle(h))
	}

	x := &job{handle: h}
	j.byKey[k] = x
	return x, nil
}

// checkOwner rejects a job that another account created under the same name: that account could control its
// members.
func (j *jobs) checkOwner(h windows.Handle) error {
	sd, err := windows.GetSecurityInfo(h, windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("cannot read its owner: %w", err)
	}

	owner, _, err := sd.Owner()
	if err != nil {
		return fmt.Errorf("cannot read its owner: %w", err)
	}
	if owner == nil {
		return errors.New("it has no owner")
	}
	if !slices.ContainsFunc(j.trusted, owner.Equals) {
		return fmt.Errorf("it belongs to %s", owner)
	}

	return nil
}

// claim makes the job of a key, if there is none, and keeps it open until release. The handle is for a command to
// inherit; the caller closes it.
func (j *jobs) claim(k gozzard.Key) (inherit windows.Handle, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	x, err := j.get(k, true)
	if err != nil {
		return 0, err
	}
	self := windows.CurrentProcess()
	if err := windows.DuplicateHandle(self, x.handle, self, &inherit, jobQuery, true, 0); err != nil {
		return 0, fmt.Errorf("cannot copy handle of job: %w", err)
	}
	x.claims++
	return inherit, nil
}

func (j *jobs) release(k gozzard.Key) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if x := j.byKey[k]; x != nil {
		x.claims--
	}
}

// assign puts a process into the job of a key that was claimed.
func (j *jobs) assign(k gozzard.Key, process windows.Handle) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	x := j.byKey[k]
	if x == nil {
		return errClosed
	}
	return windows.AssignProcessToJobObject(x.handle, process)
}

// members gives the processes that belong to a key.
func (j *jobs) members(k gozzard.Key) ([]int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	x, err := j.get(k, false)
	if x == nil {
		return nil, err
	}
	return jobMembers(x.handle)
}

// give passes a handle of the job to a member, which keeps the name of the job alive. Each member gets one handle
// in the life of this agent.
func (j *jobs) give(k gozzard.Key, p supervise.Proc) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	x := j.byKey[k]
	if x == nil || x.holder == p {
		return nil
	}

	x.holder = p // also when it fails: it would again
	process, err := open(p, windows.PROCESS_DUP_HANDLE)
	if err != nil {
		return err
	}

	defer windows.CloseHandle(process)
	var theirs windows.Handle
	if err := windows.DuplicateHandle(windows.CurrentProcess(), x.handle, process, &theirs, jobQuery, false,
		0); err != nil {
		return fmt.Errorf("cannot give handle of job to pid %d: %w", p.PID, err)
	}

	return nil
}

// clear kills everything of a key.
func (j *jobs) clear(k gozzard.Key) error {
	return killJob(func() ([]int, error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		x, err := j.get(k, false)
		if x == nil {
			return nil, err
		}
		pids, err := terminateJob(x.handle)
		if err == nil && len(pids) == 0 && x.claims == 0 {
			delete(j.byKey, k)
			err = windows.CloseHandle(x.handle)
		}
		return pids, err
	})
}

// tidy closes jobs that have become empty.
func (j *jobs) tidy() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	for k, x := range j.byKey {
		pids, err := jobMembers(x.handle)
		if err == nil && len(pids) == 0 && x.claims == 0 {
			delete(j.byKey, k)
			err = windows.CloseHandle(x.handle)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// killJob repeats the termination until no member is left.
func killJob(terminate func() (left []int, err error)) error {
	deadline := time.Now().Add(clearWait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		left, err := terminate()
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v did not end within %v of being killed", left, clearWait)
		}
		time.Sleep(pause)
	}
}

// terminateJob ends the members of a job and of the jobs inside it, and returns which ones there were. A job
// without members is not touched.
func terminateJob(h windows.Handle) ([]int, error) {
	pids, err := jobMembers(h)
	if err != nil || len(pids) == 0 {
		return nil, err
	}
	if err := windows.TerminateJobObject(h, 1); err != nil {
		return pids, fmt.Errorf("cannot end processes of job: %w", err)
	}
	return pids, nil
}

// jobMembers lists the running processes of a job and of those inside it.
func jobMembers(h windows.Handle) ([]int, error) {
	const head = 2 // JOBOBJECT_BASIC_PROCESS_ID_LIST begins with two 32-bit counts: at most so many words
	for room := 16; ; {
		buf := make([]uintptr, head+room)
		err := windows.QueryInformationJobObject(h, windows.JobObjectBasicProcessIdList,
			uintptr(unsafe.Pointer(&buf[0])), uint32(len(buf))*uint32(unsafe.Sizeof(buf[0])), nil)
		counts := (*[2]uint32)(unsafe.Pointer(&buf[0]))
		switch {
		case errors.Is(err, windows.ERROR_MORE_DATA), err == nil && counts[1] < counts[0] && int(counts[0]) > room:
			room = max(2*room, int(counts[0])+16) // more may come meanwhile
			continue
		case err != nil:
			return nil, fmt.Errorf("cannot list processes of job: %w", err)
		}
		list := buf[unsafe.Sizeof(*counts)/unsafe.Sizeof(buf[0]):]
		pids := make([]int, 0, counts[1])
		for _, pid := range list[:min(int(counts[1]), len(list))] {
			pids = append(pids, int(pid))
		}
		return pids, nil
	}
}
