package export

import (
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory/secret"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		want string // "" for right
	}{
		{"nothing", Config{}, ""},
		{"all", Config{
			Tags: map[string]string{"team": "sso"}, StatsD: StatsD{Address: "127.0.0.1:8125", Format: DogStatsD, Prefix: "a.b"},
			Prometheus: Prometheus{Listen: ":9464"}, RemoteWrite: RemoteWrite{URL: "https://h/w", User: "u", Password: secret.New("p")},
		}, ""},
		{"socket", Config{StatsD: StatsD{Address: "unix:///run/s"}}, ""},
		{"no port", Config{StatsD: StatsD{Address: "localhost"}}, `StatsD at "localhost": missing port`},
		{"relative socket", Config{StatsD: StatsD{Address: "unix://s"}}, "whole path"},
		{"format", Config{StatsD: StatsD{Address: "h:1", Format: "influx"}}, `format "influx"`},
		{"prefix", Config{StatsD: StatsD{Address: "h:1", Prefix: "a b"}}, `prefix "a b"`},
		{"listen", Config{Prometheus: Prometheus{Listen: "9464"}}, `Prometheus on "9464"`},
		{"tag name", Config{Tags: map[string]string{"a-b": "1"}}, `tag "a-b"`},
		{"own tag", Config{Tags: map[string]string{"test": "1"}}, "taken"},
		{"empty tag", Config{Tags: map[string]string{"a": ""}}, "not empty"},
		{"plain tags", Config{Tags: map[string]string{"a": "1"}, StatsD: StatsD{Address: "h:1"}}, "no tags"},
		{"no URL", Config{RemoteWrite: RemoteWrite{URL: "prometheus:9090"}}, "http or https"},
		{"password in URL", Config{RemoteWrite: RemoteWrite{URL: "http://u:hunter2@h/w"}}, "would show"},
		{"odd URL", Config{RemoteWrite: RemoteWrite{URL: "http://u:hunter2@h:x y/"}}, "no URL"},
		{"both", Config{RemoteWrite: RemoteWrite{URL: "http://h/w", User: "u", Password: secret.New("p"), Token: secret.New("t")}}, "either"},
		{"half", Config{RemoteWrite: RemoteWrite{URL: "http://h/w", User: "u"}}, "together"},
		{"credentials alone", Config{RemoteWrite: RemoteWrite{Token: secret.New("t")}}, "no URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.Check()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, wanted %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a password shows: %v", err)
			}
		})
	}
}
