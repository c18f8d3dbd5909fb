//go:build linux

package fleettest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	ft "github.com/gozzard/gozzard/test/fleettest"
)

// TestLanguagesOfDoors asks routes of GSE, Job and GSEKit in both languages and in none.
func TestLanguagesOfDoors(t *testing.T) {
	t.Parallel()
	s := ft.StartServer(t, t.TempDir())
	empty := ft.J{"meta": ft.J{"namespace": "gse", "name": "web"}, "hosts": []ft.J{}}
	unknown := ft.J{"meta": ft.J{"namespace": "gse", "name": "web"}, "hosts": []ft.J{{"ip": "10.9.9.9", "bk_cloud_id": 0}}}
	doors := []struct {
		name, path             string
		body                   ft.J
		unsaid, english, zhong string
	}{
		{"GSE", "/api/c/compapi/v2/gse/get_proc_status/", empty, "hosts: at least one host is required",
			"hosts: at least one host is required", "hosts: 至少需要一台主机"},
		{"GSE's rows", "/api/v2/proc/get_proc_status_v2", unknown, "no agent of this host is known",
			"no agent of this host is known", "该主机上没有已知的 Agent"},
		{"Job", "/api/c/compapi/v2/job/get_proc_result/", ft.J{"bk_biz_id": 2, "bk_gse_taskid": "GSETASK:1:1"}, "no such task",
			"no such task", "任务不存在"},
		{"GSEKit", "/api/2/process/process_status/", ft.J{"page": 1}, "该字段必填。", "This field is required.", "该字段必填。"},
		{"GSEKit, another part", "/api/2/process/process_status/", ft.J{"bk_app_secret": "wrong"}, "bk_app_code or bk_app_secret is wrong",
			"bk_app_code or bk_app_secret is wrong", "bk_app_code 或 bk_app_secret 错误"},
		{"GSEKit, an unknown job", "/api/2/job/77/job_status/", ft.J{}, "任务 77 不存在", "job 77 does not exist", "任务 77 不存在"},
	}

	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			for _, l := range languageHeaders() {
				want := map[string]string{"": d.unsaid, "en": d.english, "zh": d.zhong}[l.want]
				began := time.Now()
				ans, err := s.For(t).TryWith(d.path, d.body, l.header)
				if err != nil {
					t.Errorf("%s: %v", l.name, err)
					continue
				}
				if !strings.Contains(string(ans.Raw), want) {
					t.Errorf("%s: %s does not say %q", l.name, ans.Raw, want)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("%s takes %s", l.name, took)
				}
			}
		})
	}
}

type languageHeader struct {
	name   string
	header http.Header
	want   string
}

// languageHeaders are the ways to name a language, hostile ones included.
func languageHeaders() []languageHeader {
	one := func(name, value string) http.Header { return http.Header{name: {value}} }
	return []languageHeader{
		{"none", nil, ""},
		{"the platform's zh-cn", one("Blueking-Language", "zh-cn"), "zh"},
		{"the platform's zh-hans", one("Blueking-Language", "zh-hans"), "zh"},
		{"the platform's en", one("Blueking-Language", "en"), "en"},
		{"a cookie", one("Cookie", "blueking_language=zh-cn"), "zh"},
		{"a browser", one("Accept-Language", "fr, en;q=0.2, zh-TW;q=0.9"), "zh"},
		{"an English browser", one("Accept-Language", "en-US,en;q=0.9,zh;q=0.1"), "en"},
		{"the platform before the browser", http.Header{"Blueking-Language": {"en"}, "Accept-Language": {"zh"}}, "en"},
		{"another language", one("Blueking-Language", "fr"), ""},
		{"another language, then a known one", http.Header{"Blueking-Language": {"fr"}, "Accept-Language": {"zh"}}, "zh"},
		{"a long tag", one("Blueking-Language", strings.Repeat("zh", 4_000)), ""},
		{"many tags", one("Accept-Language", strings.Repeat("zh;q=0.001,", 1_000)), "zh"},
		{"many weights", one("Accept-Language", "zh"+strings.Repeat(";q=1", 2_000)), ""},
		{"no tags", one("Accept-Language", ",;,;q=;=,%s%n\t*/*"), ""},
		{"a format", one("Blueking-Language", "%s%d{{.}}"), ""},
	}
}
