package machine

import (
	"os"
	"strings"
	"testing"
)

func rules(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestRulesToDrop(t *testing.T) {
	tests := []struct {
		name, saved string
		networks    []string
	}{
		{"rules-alone", "iptables-alone.txt", nil},
		{"rules-beside-another", "iptables-beside-another.txt", []string{"tlx-net"}},
		{"rules-of-one-name", "iptables-of-one-name.txt", []string{"podman"}},
		{"rules-idle", "iptables-idle.txt", nil},
		{"rules-none", "iptables-none.txt", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var lines []string
			for _, call := range RulesToDrop(rules(t, tt.saved), "10.123.", tt.networks) {
				lines = append(lines, strings.Join(call, "|"))
			}
			golden(t, tt.name+".golden", strings.Join(lines, "\n")+"\n")
		})
	}
}

func FuzzRulesToDrop(f *testing.F) {
	f.Add("*nat\n:NETAVARK-AB - [0:0]\n-A POSTROUTING -s 10.123.0.0/24 -j NETAVARK-AB\n-A NETAVARK-AB -d 10.123.0.0/24 -j ACCEPT\nCOMMIT\n")
	f.Add("*filter\n:NETAVARK_FORWARD - [0:0]\n-A FORWARD -m comment --comment \"netavark firewall plugin rules\" -j NETAVARK_FORWARD\n")
	f.Add(":X -\n-A X -j Y\n")
	f.Fuzz(func(t *testing.T, saved string) {
		for _, call := range RulesToDrop(saved, "10.123.", []string{"n"}) {
			if line := strings.Join(call, " "); !strings.Contains(line, "NETAVARK") {
				t.Errorf("touches what is not netavark's: %s", line)
			}
		}
	})
}
