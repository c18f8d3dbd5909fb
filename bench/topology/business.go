//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/gozzard/gozzard"
	"github.com/gozzard/gozzard/internal/topology"
)

const (
	biz         = 2
	perHost     = 20 // processes, in four service instances of different modules
	perService  = 5
	perSet      = 8 // modules
	setsAtLeast = 8
)

var (
	setNames    = [...]string{"管控平台", "PaaS平台", "作业平台", "容器平台"}
	moduleNames = [perSet]string{"gse_agent", "gse_data", "gse_proxy", "gse_task", "paas_web", "paas_api", "db_mysql",
		"cache_redis"}
	roles = [perService]string{"agent", "worker", "watcher", "exporter", "backup"}
)

// makeBusiness makes a business with that many processes. Service instances have ids in random order and the processes
// of each have consecutive ids, as in a business that has grown.
func makeBusiness(processes int) *topology.Business {
	hosts := max(processes/perHost, 1)
	sets := max(min(hosts/50, 400), setsAtLeast)
	b := &topology.Business{ID: biz, Name: "蓝鲸", Clouds: []topology.Cloud{{ID: 0, Name: "default area"},
		{ID: 1, Name: "云区域"}}}
	for s := range sets {
		set := topology.Set{ID: s + 1, Name: setName(s), Env: envOf(s)}
		for m, name := range moduleNames {
			set.Modules = append(set.Modules, topology.Module{ID: 1000 + s*perSet + m, Name: name,
				ServiceTemplate: 1 + m})
		}
		b.Sets = append(b.Sets, set)
	}

	created := rand.New(rand.NewPCG(7, 11)).Perm(hosts * perHost / perService)
	for i, number := range created {
		host, part := i*perService/perHost, i%(perHost/perService)
		set := &b.Sets[host%sets]
		module := &set.Modules[(host/sets+part*2+host%2)%perSet]
		service := topology.ServiceInstance{ID: 10 + number, Host: hostOf(host)}
		service.Name = fmt.Sprintf("%s_%s", service.Host.IP, module.Name)
		for j, role := range roles {
			service.Processes = append(service.Processes, processOf(1+number*perService+j, module, role, j))
		}
		module.Instances = append(module.Instances, service)
	}

	b.Sort()
	return b
}

func setName(set int) string { return fmt.Sprintf("%s-%03d", setNames[set%len(setNames)], set) }

// envOf puts six of eight sets into the formal environment.
func envOf(set int) topology.Env {
	switch set % 8 {
	case 3:
		return topology.EnvTest
	case 6:
		return topology.EnvExperience
	}
	return topology.EnvFormal
}

func hostOf(i int) topology.Host {
	return topology.Host{
		Cloud: i % 16 / 15, IP: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}),
		Agent: gozzard.AgentID(fmt.Sprintf("0200000000%022x", i)),
	}
}

func processOf(id int, m *topology.Module, role string, j int) topology.Process {
	name := m.Name + "_" + role
	return topology.Process{
		ID: id, Name: name, FuncName: role, Template: m.ServiceTemplate*10 + j, Num: 1, Priority: j + 1, User: "root",
		WorkPath: "/data/" + name,
		PIDFile:  "/data/" + name + "/run.pid", Start: "./start.sh", Stop: "./stop.sh", Restart: "./restart.sh",
		Reload: "./reload.sh", ForceStop: "./kill.sh",
		Timeout: 60, StartCheckSecs: 5,
	}
}

// statusOf is the state of a process at the beginning: a thirtieth is stopped, a hundredth was never registered, a
// tenth is not supervised.
func statusOf(process int) (gozzard.RunState, bool) {
	switch {
	case process%30 == 0:
		return gozzard.StateStopped, process%7 != 0
	case process%100 == 1:
		return gozzard.StateUnregistered, false
	}
	return gozzard.StateRunning, process%10 != 0
}

// place is a process and where it is.
type place struct {
	set     *topology.Set
	module  *topology.Module
	service *topology.ServiceInstance
	process *topology.Process
}

// placesOf lists all processes in the order of their ids.
func placesOf(b *topology.Business) []place {
	var list []place
	for s := range b.Sets {
		set := &b.Sets[s]
		for m := range set.Modules {
			module := &set.Modules[m]
			for i := range module.Instances {
				service := &module.Instances[i]
				for p := range service.Processes {
					list = append(list, place{set, module, service, &service.Processes[p]})
				}
			}
		}
	}

	slices.SortFunc(list, func(a, b place) int { return cmp.Compare(a.process.ID, b.process.ID) })
	return list
}
