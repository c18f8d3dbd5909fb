//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/gozzard/gozzard/internal/topology"
)

// business makes a business with one process on each host.
func business(s size) *topology.Business {
	b := &topology.Business{ID: 2, Name: "shop"}
	host := 0
	for i := range s.sets {
		set := topology.Set{ID: i + 1, Name: fmt.Sprint("set-", i), Env: topology.EnvFormal,
			Attributes: topology.NewExtra(map[string]string{"zone": fmt.Sprint("z", i), "bk_service_status": "1"})}
		for j := range s.modules {
			module := topology.Module{ID: i*s.modules + j + 1, Name: fmt.Sprint("module-", j),
				Attributes: topology.NewExtra(map[string]string{"tier": fmt.Sprint("t", j%3)})}
			for range s.hosts {
				host++
				ip := netip.AddrFrom4([4]byte{10, byte(host >> 16), byte(host >> 8), byte(host)}) // #nosec G115 -- few hosts
				module.Instances = append(module.Instances, topology.ServiceInstance{ID: host, Name: ip.String(),
					Host:           topology.Host{IP: ip, ID: host},
					HostAttributes: topology.NewExtra(map[string]string{"rack": fmt.Sprint("r", host%40)}),
					Processes: []topology.Process{{ID: host, Name: fmt.Sprint("web-", j), FuncName: "web", Num: 1, User: "www",
						WorkPath: "/opt/web", PIDFile: "/run/web.pid", Start: "./start.sh"}}})
			}
			set.Modules = append(set.Modules, module)
		}
		b.Sets = append(b.Sets, set)
	}
	return b
}

// section is a part of the templates, as configuration files of web servers have it.
const section = `# upstreams of ${FuncID} in ${bk_set_name}
worker_processes ${4 + LocalInstID};
error_log ${WorkPath}/logs/${bk_module_name}_${'%03d' % InstID}.log;
% if zone == 'z0':
resolver 10.0.0.53;
% else:
resolver 10.0.1.53;   # ${zone} ${rack}
% endif
server {
    listen ${bk_host_innerip}:${8000 + InstID % 100};
    server_name ${bk_host_innerip.replace('.', '-')}.${tier}.example.org;
    root ${WorkPath}/html;
    location / { proxy_pass http://backend; proxy_set_header Host $host; }
}
`

// loop is the part with the hosts of the own module.
const loop = `upstream backend {
% for host in this.cc_module:
    server ${host.attrib['InnerIP']}:9000 weight=${1 + loop.index % 3};
% endfor
}
`

// search is the part that looks for hosts in the whole tree.
const search = `% for host in cc.findall('.//Module[@ModuleName="module-1"]/Host'):
allow ${host.attrib['InnerIP']};
% endfor
`

// templates are the templates that are measured, by what is special in them.
func templates(s size) []named {
	plain := loop + strings.Repeat(section, max(1, (s.text-len(loop))/len(section)))
	return []named{
		{"names, conditions, formats, and a loop over the hosts of the own module", plain},
		{"the same, and a search of the whole tree", plain + search},
	}
}

type named struct{ what, text string }
