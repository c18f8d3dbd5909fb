package gsekit

import (
	"fmt"

	"github.com/gozzard/gozzard/internal/blueking"
	"github.com/gozzard/gozzard/internal/language"
)

// speech is the language of the door's own messages, and the texts of other parts.
type speech struct {
	blueking.Words
}

// index is the column of phrases: Chinese, unless the caller asks for English.
func (l speech) index() int {
	if l.Language == language.English {
		return 1
	}
	return 0
}

// phrase is one message.
type phrase uint8

const (
	sayRequired phrase = iota
	sayNull
	sayBlank
	sayNUL
	sayWantInt
	sayRange
	sayWantBool
	sayWantString
	sayWantList
	sayWantObject
	sayWantTime
	sayChoice
	sayTooMany
	sayNoOrder
	sayAtLeastOne
	sayTooManyPatterns
	sayInternal
	sayConfigJob
	sayNoJob
	sayNoTask
	sayRetryRefused
	sayAList
	sayNoCMDB
	sayFromDocument
	sayNotInBusiness
	sayCMDBError
	sayAnObject

	sayPending
	sayRunning
	saySucceeded
	sayFailed
	sayIgnored
	sayOther

	sayAgentAbnormal
	sayAlreadyRunning
	sayNotRunning
	sayUnknownOp
	sayStartCheck
	sayStopCheck
	sayCommandFailed
	sayGSEOther

	sayNothing
	sayTimeout
	sayGSEError
	sayEarlier
	sayMissing
	sayTemplate

	sayNoTemplate
	sayNoVersion
	sayDraftExists
	sayNoInstance
	saySameName
	sayHelpInside
	sayBothStates
	sayWhiteSpace
	sayBadMode
	sayBadAccount
	sayNoActive
	sayNoInclude
	sayNoProcess
	sayNoProcessInst
	sayRenderFault
	sayUnbound
	sayNotMade
	sayNotWritten
	sayAbsent
	sayDiffers
	sayNotRead
	sayNoActiveShort
	sayUnsafeShort
	sayNoProcessShort
	sayHostFileShort
	sayAbsentShort

	sayBusiness
	saySet
	sayModule
	sayConfigFile
	sayProcess
	sayGenerate
	sayRelease
	sayDiff
	sayStart
	sayStop
	sayRestart
	sayReload
	sayForceStop
	saySetAuto
	sayUnsetAuto
	sayIsRunning
	sayIsStopped
	sayNotManaged
	sayBasicGroup
	sayAddedGroup
	sayOldGroup
	sayBuiltInGroup
	sayOldName
	sayVariableHelp
	sayVariableTree
	sayVariableThis
	sayVariableLocal
	sayVariableLocal0
	sayVariableInst
	sayVariableInst0
	sayVariableFunc
	sayFilterNeedsCMDB
	sayManaged

	sayHintAttribute
	sayHintTemplate
	sayHintScript
	sayHintAdmin
)

// phrases are all messages of this door in both languages. Those about expressions are Chinese only: see
// expressionFault.
var phrases = [...][2]string{
	sayRequired:   {"该字段必填。", "This field is required."},
	sayNull:       {"该字段不能为 null。", "This field may not be null."},
	sayNUL:        {"不允许是用空字符串。", "Null characters are not allowed."},
	sayBlank:      {"该字段不能为空白。", "This field may not be blank."},
	sayWantInt:    {"应为整数，实际为 %s。", "A whole number is expected, not %s."},
	sayRange:      {"应在 %d 至 %d 之间，实际为 %s。", "A number from %d to %d is expected, not %s."},
	sayWantBool:   {"应为布尔值，实际为 %s。", "A boolean is expected, not %s."},
	sayWantString: {"应为字符串，实际为 %s。", "A string is expected, not %s."},
	sayWantList:   {"应为列表，实际为 %s。", "A list is expected, not %s."},
	sayWantObject: {"应为对象，实际为 %s。", "An object is expected, not %s."},
	sayWantTime: {"应为时间（如 2006-01-02 15:04:05），实际为 %s。",
		"A time such as 2006-01-02 15:04:05 is expected, not %s."},
	sayChoice:  {"“%s” 不是合法选项。", "“%s” is not a valid choice."},
	sayTooMany: {"有 %d 项，最多允许 %d 项。", "There are %d items, at most %d are allowed."},
	sayNoOrder: {"不支持按 id 排序，请使用 bk_process_id。", "Ordering by id is not supported, use bk_process_id."},
	sayAtLeastOne: {"scope, expression_scope required at least one.",
		"scope, expression_scope required at least one."},
	sayTooManyPatterns: {"表达式展开后超过 %d 项。", "The expression stands for more than %d patterns."},
	sayInternal:        {"系统异常，请凭 request_id 联系管理员查看日志", "internal error, the log has it under this request id"},
	sayConfigJob: {
		"不支持的任务动作：job_object=%s, job_action=%s；进程支持 start, stop, restart, reload, force_stop, set_auto, unset_auto，配置文件支持 %s",
		"job_object %s with job_action %s is not supported: process has start, stop, restart, reload, force_stop, set_auto and unset_auto, configfile has %s",
	},
	sayNoJob:        {"任务 %d 不存在", "job %d does not exist"},
	sayNoTask:       {"任务 %d 中没有可重试的指定子任务：%s", "job %d has no such tasks to retry: %s"},
	sayRetryRefused: {"任务 %d 不能重试：%s", "job %d cannot be retried: %s"},
	sayAList:        {"列表", "a list"},
	sayAnObject:     {"对象", "an object"},

	sayPending:   {"等待执行", "waiting"},
	sayRunning:   {"正在执行", "running"},
	saySucceeded: {"执行成功", "succeeded"},
	sayFailed:    {"执行失败", "failed"},
	sayIgnored:   {"已忽略", "ignored"},
	sayOther:     {"其它错误", "other error"},

	sayAgentAbnormal:  {"Agent 异常或不存在", "the agent is abnormal or does not exist"},
	sayAlreadyRunning: {"进程已在运行，无需启动", "the process runs already, there is no need to start it"},
	sayNotRunning:     {"进程未在运行，无需操作", "the process does not run, there is nothing to do"},
	sayUnknownOp:      {"非法的操作类型", "illegal kind of operation"},
	sayStartCheck:     {"启动失败，进程未在运行", "start failed, the process does not run"},
	sayStopCheck:      {"停止失败，进程仍在运行", "stop failed, the process still runs"},
	sayCommandFailed:  {"命令执行失败", "the command failed"},
	sayGSEOther:       {"执行失败，详见错误码与错误信息", "failed, see the code and the message"},

	sayNothing:  {"没有符合条件的进程实例，无任务可执行", "no process instance fits, there are no tasks to run"},
	sayTimeout:  {"任务执行超时", "timed out"},
	sayGSEError: {"下发操作失败", "the operation was not accepted"},
	sayEarlier:  {"前序优先级执行失败，本任务未执行", "an earlier priority failed, this task was not run"},
	sayMissing:  {"进程必填属性为空", "required attributes of the process are empty"},
	sayTemplate: {"模板渲染失败，请检查模板变量是否正确书写", "a template cannot be rendered, check the names in it"},

	sayNoTemplate:  {"配置模板不存在", "the configuration template does not exist"},
	sayNoVersion:   {"配置版本不存在", "the version does not exist"},
	sayDraftExists: {"配置模板草稿已存在，不允许创建", "the configuration template has a draft already"},
	sayNoInstance:  {"配置实例不存在", "the rendered file does not exist"},
	saySameName:    {"配置模板名称重复[%s]", "there is a configuration template of the name %s already"},
	sayHelpInside: {"配置文件内容非法, ${HELP}变量仅在预览时提供帮助，保存配置时请不要包含",
		"the content has ${HELP}, which is for previews only: remove it before you save the content"},
	sayBothStates: {"不允许同时保存为草稿和可用状态", "a version is either a draft or active"},
	sayWhiteSpace: {"参数中不允许有空白字符", "blanks and other white space are not allowed here"},
	sayBadMode: {"文件权限非法[%s]，应为三到四位八进制数，且不超过 0777，例如 0644",
		"the mode %s must be three or four octal digits up to 0777, such as 0644"},
	sayBadAccount: {"用户或用户组名称非法[%s]", "%s cannot be the name of a user or a group"},

	sayNoActive: {"配置模板[%s]没有可用的版本，请对该模板进行保存操作",
		"the configuration template %s has no active version: save one"},
	sayNoInclude: {"依赖模板[%s]不存在，请注意Ginclude的是模板名称，不是文件名称",
		"the included template %s does not exist: Ginclude takes the name of a template, not of a file"},
	sayNoProcess:     {"进程不存在: bk_process_id[%s]", "the process %s does not exist"},
	sayNoProcessInst: {"进程没有实例: bk_process_id[%s]", "the process %s has no instance"},
	sayRenderFault: {"模板渲染失败，[第%s行：%s，错误：%s]，请检查模板变量是否正确书写",
		"the template cannot be rendered: line %s: %s: %s"},
	sayUnbound:    {"进程未绑定配置模板", "no configuration template is bound to the process"},
	sayNotMade:    {"没有已生成的配置，请先生成", "nothing was rendered that could be released: generate it first"},
	sayNotWritten: {"下发配置失败：%s", "the host did not take the file: %s"},
	sayAbsent:     {"现网配置不存在：%s", "the file does not exist on the host: %s"},
	sayDiffers:    {"现网配置与最近一次下发的配置不一致", "the file on the host is not the one that was released last"},
	sayNotRead:    {"读取现网配置失败：%s", "the file on the host could not be read: %s"},

	sayNoActiveShort:  {"配置模板没有可用的版本", "the configuration template has no active version"},
	sayUnsafeShort:    {"配置内容含有禁止使用的语法", "the content is not allowed in a template"},
	sayNoProcessShort: {"进程不存在", "the process does not exist"},
	sayHostFileShort:  {"读写主机上的配置文件失败", "the file on the host could not be read or written"},
	sayAbsentShort:    {"现网配置不存在", "the file does not exist on the host"},
	sayBusiness:       {"业务", "business"},
	saySet:            {"集群", "set"},
	sayModule:         {"模块", "module"},
	sayConfigFile:     {"配置文件", "configuration file"},
	sayProcess:        {"进程", "process"},
	sayGenerate:       {"生成", "generate"},
	sayRelease:        {"下发", "release"},
	sayDiff:           {"检查", "compare"},
	sayStart:          {"启动", "start"},
	sayStop:           {"停止", "stop"},
	sayRestart:        {"重启", "restart"},
	sayReload:         {"重载", "reload"},
	sayForceStop:      {"强制停止", "force stop"},
	saySetAuto:        {"托管", "manage"},
	sayUnsetAuto:      {"取消托管", "unmanage"},
	sayIsRunning:      {"运行中", "running"},
	sayIsStopped:      {"未运行", "not running"},
	sayNotManaged:     {"未托管", "not managed"},
	sayManaged:        {"已托管", "managed"},
	sayBasicGroup:     {"基础信息", "basic"},
	sayAddedGroup:     {"自定义", "added"},
	sayOldGroup:       {"旧系统字段", "names of the old system"},
	sayBuiltInGroup:   {"内置字段", "built in"},
	sayOldName:        {"%s(旧)", "%s (old)"},
	sayVariableHelp:   {"【HELP】帮助", "help: all variables and their values"},
	sayVariableTree:   {"【业务拓扑对象】", "the tree of the business"},
	sayVariableThis:   {"【当前实例对象】", "the set, module and host of the process"},
	sayVariableLocal:  {"主机进程实例ID", "number of the instance on its host"},
	sayVariableLocal0: {"主机进程实例ID（从0编号）", "number of the instance on its host, from 0"},
	sayVariableInst:   {"实例ID", "number of the instance in its module"},
	sayVariableInst0:  {"实例ID（从0编号）", "number of the instance in its module, from 0"},
	sayVariableFunc:   {"进程别名(旧)", "alias of the process (old)"},

	sayFilterNeedsCMDB: {"业务来自拓扑文档，不支持此条件。请用集群、模块或服务实例的 ID 筛选",
		"the business comes from a document, which this condition does not apply to: use ids of sets, modules or service instances"},

	sayNoCMDB: {"服务端没有配置 CMDB，不能修改进程。请用 --cmdb-url 配置 CMDB，或用 gozzard topology apply 修改业务的拓扑文档",
		"the server has no CMDB, so processes cannot be changed here: start it with --cmdb-url, or change the document of the " +
			"business with gozzard topology apply"},
	sayFromDocument: {"业务 %d 来自拓扑文档，不来自 CMDB。请修改文档，然后执行 gozzard topology apply（业务 %d）",
		"business %d comes from a document, not from CMDB: change the document of business %d, then run gozzard topology apply"},
	sayNotInBusiness: {"业务 %d 中没有这样的服务实例或进程。若它是新的，请先同步（flush_process）",
		"business %d has no such service instance or process; if it is new, sync first (flush_process)"},
	sayCMDBError: {"[配置平台]API请求异常：(%s)", "CMDB rejected the call: %s"},

	sayHintAttribute: {"请在进程属性中补全缺少的属性，然后同步", "fill in the missing attributes of the process, then sync"},
	sayHintTemplate: {"若进程来自服务模板，请在 CMDB 服务模板中补全后同步到服务实例",
		"if it comes from a service template, fill them in there and sync the service instances"},
	sayHintScript: {"请检查启停脚本能否在超时时间内退出", "check that the script ends in time"},
	sayHintAdmin:  {"若脚本正常，请联系管理员", "if the script is right, ask an administrator"},
}

func (l speech) say(p phrase, args ...any) string {
	if len(args) == 0 {
		return phrases[p][l.index()]
	}
	return fmt.Sprintf(phrases[p][l.index()], args...)
}
