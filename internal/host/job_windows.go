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

// jobs are the job objects of this agent's processes, one for each key. A job contains everything that the commands of
// a process start and leave running, with all descendants. Closing a job does not end its members, so processes keep
// running when the agent ends.
//
// A restarted agent finds the members by the name of the job. Windows forgets a name when the last handle of its
// object is closed, even while the job has members. Therefore commands inherit a handle that can only query, and pass
// it on to what they start. A process that was found is given such a handle too.
type jobs struct {
	prefix  string
	access  *windows.SecurityAttributes // of jobs that are made: for this account, administrators and the system
	trusted []*windows.SID              // accounts that may own an existing job

	mu    sync.Mutex // held during every use of a handle
	byKey map[gozzard.Key]*job
}

type job struct {
	handle windows.Handle
	claims int            // starting and running commands, which may need it while it has no members
	holder supervise.Proc // the process that was given a handle
}

func newJobs(instance string) (*jobs, error) {
	// Describe which accounts may use the jobs.
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

	// List the accounts that may own an existing job.
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

// get returns the job of a key, or nil when there is none and make is false. The caller holds mu.
func (j *jobs) get(k gozzard.Key, make bool) (*job, error) {
	if x := j.byKey[k]; x != nil {
		return x, nil
	}

	// Open the job by its name.
	name, err := j.name(k)
	if err != nil {
		return nil, fmt.Errorf("cannot name job: %w", err)
	}
	var h windows.Handle
	if make {
		h, err = windows.CreateJobObject(j.access, name) // opens a job that exists
	} else if h, err = openJob(name); errors.Is(err, windows.ERROR_FILE_NOT_FOUND) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open job %s: %w", windows.UTF16PtrToString(name), err)
	}

	// Reject a job of another account.
	if err := j.checkOwner(h); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot use job %s: %w", windows.UTF16PtrToString(name), err),
			windows.CloseHandle(h))
	}

	// Remember it.
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

// release ends a claim.
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

// members returns the processes that belong to a key.
func (j *jobs) members(k gozzard.Key) ([]int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	x, err := j.get(k, false)
	if x == nil {
		return nil, err
	}
	return jobMembers(x.handle)
}

// has reports whether a process is in the job of a key.
func (j *jobs) has(k gozzard.Key, pid int) bool {
	pids, err := j.members(k)
	return err == nil && slices.Contains(pids, pid)
}

// give passes a handle of the job to a member, which keeps the name of the job alive. Each member gets one handle
// in the life of this agent.
func (j *jobs) give(k gozzard.Key, p supervise.Proc) error {
	j.mu.Lock()
	defer j.mu.Unlock()

	// Try once for each process: an attempt that failed would fail again.
	x := j.byKey[k]
	if x == nil || x.holder == p {
		return nil
	}
	x.holder = p

	// Open the process.
	process, err := open(p, windows.PROCESS_DUP_HANDLE)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)

	// Copy the handle into it.
	var theirs windows.Handle
	self := windows.CurrentProcess()
	if err := windows.DuplicateHandle(self, x.handle, process, &theirs, jobQuery, false, 0); err != nil {
		return fmt.Errorf("cannot give handle of job to pid %d: %w", p.PID, err)
	}
	return nil
}

// clear kills all processes of a key.
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
	// JOBOBJECT_BASIC_PROCESS_ID_LIST begins with two 32-bit counts, which take one or two words.
	const head = 2
	for room := 16; ; {
		// Ask the system.
		buf := make([]uintptr, head+room)
		err := windows.QueryInformationJobObject(h, windows.JobObjectBasicProcessIdList,
			uintptr(unsafe.Pointer(&buf[0])), uint32(len(buf))*uint32(unsafe.Sizeof(buf[0])), nil)
		counts := (*[2]uint32)(unsafe.Pointer(&buf[0]))

		// Repeat with more room if the list did not fit.
		switch {
		case errors.Is(err, windows.ERROR_MORE_DATA), err == nil && counts[1] < counts[0] && int(counts[0]) > room:
			room = max(2*room, int(counts[0])+16) // more may start in between
			continue
		case err != nil:
			return nil, fmt.Errorf("cannot list processes of job: %w", err)
		}

		// Copy the pids.
		list := buf[unsafe.Sizeof(*counts)/unsafe.Sizeof(buf[0]):]
		pids := make([]int, 0, counts[1])
		for _, pid := range list[:min(int(counts[1]), len(list))] {
			pids = append(pids, int(pid))
		}
		return pids, nil
	}
}
