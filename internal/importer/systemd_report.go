package importer

import (
	"path"
	"regexp"
	"strings"
)

// unitNote says what becomes of keys without a counterpart.
type unitNote struct {
	keys           string // a pattern of keys
	level          Level
	reason, advice string
}

// serviceNotes are the keys of [Service] that are read elsewhere (no level) or that have no counterpart. The first line
// whose pattern fits counts.
var serviceNotes = []unitNote{
	{keys: `Type|ExecStart|ExecStartPre|ExecStartPost|ExecReload|ExecStop|ExecStopPost|ExecCondition|PIDFile|User|Group|WorkingDirectory|` +
		`Environment|EnvironmentFile|UMask|Nice|KillSignal|KillMode|SendSIGKILL|Timeout(Start|Stop|)Sec|Restart|RestartSec|StartLimit.*|` +
		`Limit(AS|CORE|CPU|DATA|FSIZE|MEMLOCK|MSGQUEUE|NOFILE|NPROC|RTPRIO|SIGPENDING|STACK)|MemoryMax|MemoryLimit|CPUQuota|BusName|RemainAfterExit|GuessMainPID`},
	{keys: `StandardOutput|StandardError|SyslogIdentifier|SyslogFacility|SyslogLevel.*|Log.*`, level: Harmless,
		reason: "the output goes into the log that the agent keeps", advice: "read it with gozzard logs NAME"},
	{keys: `Slice|.*Accounting|Delegate.*|OOMPolicy|NotifyAccess|NonBlocking|TimeoutAbortSec|TimeoutStartFailureMode|TimeoutStopFailureMode|FinalKillSignal|` +
		`RestartKillSignal|WatchdogSignal|SendSIGHUP|IgnoreSIGPIPE|CPUWeight|StartupCPU.*|IOWeight|CPUShares|BlockIO.*|Nice|FileDescriptorStoreMax|FailureAction|SuccessAction|` +
		`ExitType|TTY.*|Personality|CoredumpFilter|TimerSlackNSec|ManagedOOM.*|RestartSteps|RestartMaxDelaySec|CPUQuotaPeriodSec|OpenFile|UtmpIdentifier|UtmpMode|ReloadSignal`,
		level: Harmless, reason: "a definition has nothing like it"},
	{keys: `OOMScoreAdjust|IOScheduling.*|CPUScheduling.*|CPUAffinity|NUMA.*|AllowedCPUs|AllowedMemoryNodes|TasksMax|MemoryHigh|MemoryLow|MemoryMin|MemorySwapMax|IORead.*|IOWrite.*|IODevice.*|LimitRSS|LimitLOCKS|LimitNICE|LimitRTTIME`,
		level: Check, reason: "the process runs without this limit or priority", advice: "set it in the command if the process needs it, such as with choom, ionice or taskset"},
	{keys: `WatchdogSec`, level: Check, reason: "Gozzard does not notice a process that hangs by its messages", advice: "give a health check with restart: true"},
	{keys: `SuccessExitStatus|RestartPreventExitStatus|RestartForceExitStatus`, level: Check,
		reason: "Gozzard knows 0 as the only exit code of an expected end", advice: "make the program exit with 0, or use restart: never"},
	{keys: `RuntimeDirectoryMode|RuntimeDirectoryPreserve|StateDirectoryMode|CacheDirectoryMode|LogsDirectoryMode|ConfigurationDirectoryMode`},
	{keys: `PassEnvironment|UnsetEnvironment`, level: Check, reason: "the process gets no variables of systemd", advice: "add those that it needs to env"},
	{keys: `SupplementaryGroups`, level: Check, reason: "the process has the groups of its account only", advice: "add the account to these groups: usermod -aG GROUP ACCOUNT"},
	{keys: `PAMName`, level: Check, reason: "there is no session of PAM, so its limits and variables are missing", advice: "give rlimits and env"},
	{keys: `DynamicUser`, level: LeftOut, reason: "the account exists only while systemd runs the process", advice: "create an account, and set User= by a drop-in"},
	{keys: `AmbientCapabilities`, level: LeftOut, reason: "the process gets rights that its account does not have",
		advice: "give the rights to the program (setcap), or run it as root if that is acceptable, and remove the key by a drop-in"},
	{keys: `RootDirectory|RootImage|RootHash.*|RootVerity|MountImages|ExtensionImages|ExtensionDirectories|BindPaths|NetworkNamespacePath|IPCNamespacePath|LoadCredential.*|SetCredential.*|ImportCredential|StandardInput.*|Sockets|USBFunction.*`,
		level: LeftOut, reason: "systemd prepares something that the process needs, and Gozzard does not", advice: "leave it with systemd, or remove the key by a drop-in if it is not needed"},
	{keys: `CapabilityBoundingSet|NoNewPrivileges|SecureBits|PrivateTmp|PrivateDevices|PrivateNetwork|PrivateUsers|PrivateMounts|PrivateIPC|PrivatePIDs|Protect.*|Restrict.*|` +
		`SystemCall.*|LockPersonality|MemoryDenyWriteExecute|ReadWritePaths|ReadOnlyPaths|InaccessiblePaths|ReadWriteDirectories|ReadOnlyDirectories|InaccessibleDirectories|ExecPaths|NoExecPaths|BindReadOnlyPaths|TemporaryFileSystem|` +
		`DeviceAllow|DevicePolicy|IPAddress.*|IPIngress.*|IPEgress.*|SocketBind.*|AppArmorProfile|SELinuxContext|SmackProcessLabel|ProcSubset|RemoveIPC|KeyringMode|MountFlags|MountAPIVFS|JoinsNamespaceOf|DisableControllers|NFTSet|BPFProgram`,
		level: Security, reason: "the process runs without this protection", advice: "keep it with systemd if it needs the protection, or protect it in another way (AppArmor, bwrap in the command)"},
}

var servicePatterns = compileNotes(serviceNotes)

func compileNotes(notes []unitNote) []*regexp.Regexp {
	list := make([]*regexp.Regexp, len(notes))
	for i, n := range notes {
		list[i] = regexp.MustCompile("^(" + n.keys + ")$")
	}
	return list
}

// isListKey finds the keys whose values add up when they are repeated. Of other keys the last value counts.
var isListKey = regexp.MustCompile(`^(CapabilityBoundingSet|AmbientCapabilities|SystemCall(Filter|Architectures|Log)|Restrict(AddressFamilies|Namespaces|FileSystems|NetworkInterfaces)|` +
	`(ReadWrite|ReadOnly|Inaccessible)(Paths|Directories)|(No)?ExecPaths|Bind(ReadOnly)?Paths|TemporaryFileSystem|DeviceAllow|IPAddress(Allow|Deny)|IP(In|E)gressFilterPath|` +
	`SocketBind(Allow|Deny)|(Load|Set)Credential.*|ImportCredential|MountImages|Extension(Images|Directories)|SupplementaryGroups|PassEnvironment|UnsetEnvironment|Sockets|` +
	`(Runtime|State|Cache|Logs|Configuration)Directory|CPUAffinity|IO(Read|Write|Device).*|SuccessExitStatus|Restart(Prevent|Force)ExitStatus)$`)

// report reports the keys without a counterpart.
func (s *service) report() {
	seen := map[string]bool{}
	for _, e := range s.unit.sections["Service"] {
		if seen[e.key] || strings.HasPrefix(e.key, "X-") {
			continue
		}
		seen[e.key] = true
		last, ok := s.unit.last("Service", e.key)
		switch {
		case !ok && e.key == "CapabilityBoundingSet": // an empty list takes all capabilities away
			s.reportKey(last)
		case !ok:
		case isListKey.MatchString(e.key):
			for _, each := range s.unit.list("Service", e.key) {
				s.reportKey(each)
			}
		default:
			s.reportKey(last)
		}
	}
	for _, e := range s.unit.sections["Unit"] {
		if strings.HasPrefix(e.key, "Condition") || strings.HasPrefix(e.key, "Assert") {
			s.d.note(Check, e, "Gozzard starts the process without this condition", "")
		}
		if e.key == "JoinsNamespaceOf" {
			s.d.note(Security, e, "the process runs without this protection", "")
		}
	}
}

func (s *service) reportKey(e entry) {
	if s.folders(e) {
		return
	}
	for i, p := range servicePatterns {
		if !p.MatchString(e.key) {
			continue
		}
		n := serviceNotes[i]
		off := e.value == "no" || e.value == "false" || e.value == "0" || e.value == "off"
		if n.level == "" || off && n.level != Check || e.key == "StandardInput" && (e.value == "null") {
			return
		}
		s.d.note(n.level, e, n.reason, n.advice)
		return
	}
	s.d.note(Check, e, "this key is not known", "look up what it does in the manual of systemd")
}

// folders reports the folders that systemd makes before the process starts. Those below /run are gone after a reboot.
func (s *service) folders(e entry) bool {
	bases := map[string]string{"RuntimeDirectory": "/run", "StateDirectory": "/var/lib", "CacheDirectory": "/var/cache",
		"LogsDirectory": "/var/log", "ConfigurationDirectory": "/etc"}
	base, ok := bases[e.key]
	if !ok {
		return false
	}
	mode := "0755"
	if m, ok := s.unit.last("Service", e.key+"Mode"); ok {
		mode = m.value
	}
	group := s.user
	if g, ok := s.d.values["group"].(string); ok {
		group = g
	}
	var lines []string
	for name := range strings.FieldsSeq(e.value) {
		if text, err := s.specifiers(name); err == nil {
			name, _, _ = strings.Cut(text, ":")
			lines = append(lines, "d "+path.Join(base, name)+" "+mode+" "+s.user+" "+group+" -")
		}
	}
	if s.user == "root" && e.key == "ConfigurationDirectory" {
		return true
	}
	if s.w.Adopts {
		s.d.note(Harmless, e, "Gozzard does not make this folder before a start; it stays, and with --adopt systemd makes those below /run at every boot", "")
		return true
	}
	s.d.note(Check, e, "Gozzard does not make this folder before a start, and systemd removes a folder below /run when its unit stops",
		"put into /etc/tmpfiles.d/"+s.unit.plain()+".conf: "+strings.Join(lines, "; "))
	return true
}
