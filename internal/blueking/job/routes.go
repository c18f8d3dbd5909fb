package job

import "github.com/gozzard/gozzard/internal/blueking"

// family is that of all prefixes: the calls are the same in every folder.
const family = "job"

// prefixes are the folders of the bus, those that the bus uses to call Job, and those of both versions of Job's
// service.
func prefixes() []blueking.Prefix {
	return []blueking.Prefix{
		{Path: "/api/c/compapi/v2/job", Family: family},
		{Path: "/api/c/compapi/v2/jobv3", Family: family},
		{Path: "/api/c/compapi/job", Family: family},
		{Path: "/api/job/v2/job-execute", Family: family},
		{Path: "/api/job/v3/job-execute", Family: family},
		{Path: "/api/v2", Family: family},
		{Path: "/esb/api/v2", Family: family},
		{Path: "/esb/api/v3", Family: family},
	}
}

func (s *server) routes() []blueking.Route {
	all := []string{family}
	const user, small, large = blueking.AccessUser, blueking.MaxBody, blueking.MaxBodyMulti
	return []blueking.Route{
		{Name: "operate_proc", Families: all, Access: user, MaxBody: large, Handle: s.handler(operateProc())},
		{Name: "operate_process", Families: all, Access: user, MaxBody: large, Handle: s.handler(operateProcess())},
		{Name: "manage_proc", Families: all, Access: user, MaxBody: large, Handle: s.handler(manageProc())},
		// the names of these calls before version 2
		{Name: "gse_proc_operate", Families: all, Access: user, MaxBody: large, Handle: s.handler(operateProc())},
		{Name: "gse_process_manage", Families: all, Access: user, MaxBody: large, Handle: s.handler(manageProc())},
		{Name: "get_proc_result", Families: all, Access: user, MaxBody: small, Read: true, Handle: s.result},
	}
}
