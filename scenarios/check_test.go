package scenarios_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/benchctl/benchctl/inventory/hclfile"
	"github.com/benchctl/benchctl/scenarios"
)

// in wraps what stands in a scenario so that it begins on line 2.
func in(s string) string { return "scenario \"x\" {\n" + s + "\n}\n" }

// test wraps attributes of a test so that they begin on line 3.
func test(s string) string { return in("test \"t\" {\n" + s + "\n}") }

const jwks = "flow = \"jwks\"\n"

// load wraps attributes of a load so that they begin on line 5.
func load(kind, s string) string { return test(jwks + "load \"" + kind + "\" {\n" + s + "\n}") }

const fine = "\nload \"closed\" {\n vus = 1\n hold = \"1s\"\n}"

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ src, want, hint string }{
		// Blocks and names.
		"misspelt block type":        {"scenari \"x\" {}", `a.hcl:1:1: unknown block "scenari"`, `Did you mean "scenario"?`},
		"misspelt block":             {in("keycloack {}"), `a.hcl:2:1: unknown block "keycloack" in scenario "x"`, `Did you mean "keycloak"?`},
		"misspelt attribute":         {in("keycloak {\ncpuz = \"1\"\n}"), `a.hcl:3:1: unknown attribute "cpuz" in keycloak`, `Did you mean "cpus"?`},
		"unclosed block":             {"scenario \"x\" {\n", `a.hcl:1:14: unclosed configuration block`, ""},
		"no name":                    {"scenario {}", `a.hcl:1:1: scenario needs a label`, `scenario "NAME"`},
		"bad name":                   {`scenario "a/b" {}`, `a.hcl:1:10: "a/b" is no name for a scenario`, ""},
		"same name":                  {in("") + in(""), `a.hcl:4:1: scenario "x" is declared twice, first at a.hcl:1`, ""},
		"two keycloak blocks":        {in("keycloak {}\nkeycloak {}"), `a.hcl:3:1: keycloak stands twice in scenario "x", first at a.hcl:2`, ""},
		"two databases":              {in("database \"postgresql\" {}\ndatabase \"mariadb\" {}"), `a.hcl:3:1: database stands twice`, ""},
		"same test twice":            {in("test \"t\" {\n" + jwks + fine + "\n}\ntest \"t\" {}"), `a.hcl:10:1: test "t" stands twice in scenario "x", first at a.hcl:2`, ""},
		"keycloak with a label":      {in("keycloak \"x\" {}"), `a.hcl:2:10: keycloak has a label too many`, ""},
		"database without a kind":    {in("database {}"), `a.hcl:2:1: database needs a label`, "postgresql, mariadb"},
		"unknown database":           {in("database \"postgres\" {}"), `a.hcl:2:10: unknown database "postgres"`, `Did you mean "postgresql"?`},
		"unknown proxy":              {in("proxy \"nginx\" {}"), `a.hcl:2:7: unknown proxy "nginx"`, "traefik"},
		"unknown ldap":               {in("ldap \"ad\" {}"), `a.hcl:2:6: unknown ldap "ad"`, "openldap"},
		"unknown generation":         {in("generation = \"quarkos\""), `a.hcl:2:14: generation: unknown value "quarkos"`, `Did you mean "quarkus"?`},
		"path that wildfly lacks":    {in("generation = \"wildfly\"\nkeycloak {\nrelative_path = \"/\"\n}"), `a.hcl:4:17: the URLs of generation "wildfly" all begin with /auth`, "Leave relative_path out."},
		"caches that wildfly lacks":  {in("generation = \"wildfly\"\nkeycloak {\ncaches = { users = 5 }\n}"), `a.hcl:4:10: generation "wildfly" does not take sizes of caches`, `take generation "quarkus"`},
		"network that wildfly lacks": {in("generation = \"wildfly\"\nnetwork {\nmode = \"host\"\n}"), `a.hcl:4:8: generation "wildfly" does not take the network of the target`, ""},
		"hash that wildfly lacks":    {in("generation = \"wildfly\"\ndataset {\nhash = \"hashAlgorithm(argon2)\"\n}"), `a.hcl:4:8: servers of generation "wildfly" can't hash with argon2`, "pbkdf2-sha256"},
		"unknown parent":             {in("extends = \"bseline\""), `a.hcl:2:11: scenario "x" extends "bseline", which is not known`, `Did you mean "baseline"?`},
		"parent that is computed":    {in("extends = \"base${var.x}\""), `a.hcl:2:11: extends takes the name of a scenario, written out`, ""},
		"parent that is a variable":  {in("extends = var.x"), `a.hcl:2:11: extends takes the name`, ""},
		"removes what is not there":  {in("extends = \"baseline\"\nremove_tests = [\"login\", \"logn\"]"), `a.hcl:3:26: remove_tests: there is no test "logn" to remove`, `Tests: userinfo`},
		"removes a container":        {in("remove_containers = [\"x\"]"), `remove_containers: there is no container "x" to remove`, ""},

		// Keycloak.
		"three nodes":             {in("keycloak {\nnodes = 3\n}"), `a.hcl:3:9: nodes takes a whole number from 1 to 2, not 3`, ""},
		"no node":                 {in("keycloak {\nnodes = 0\n}"), `nodes takes a whole number from 1 to 2, not 0`, ""},
		"two nodes, no proxy":     {in("keycloak {\nnodes = 2\n}"), `a.hcl:3:9: 2 nodes without a proxy`, `proxy "traefik"`},
		"cpusets for other nodes": {in("keycloak {\nnode_cpus = [\"1\", \"2\"]\n}"), `a.hcl:3:13: node_cpus has 2 cpusets, and nodes is 1`, ""},
		"cpuset backwards":        {in("keycloak {\ncpus = \"5-2\"\n}"), `a.hcl:3:8: cpus: "5-2" is no cpuset`, `"auto"`},
		"cpuset of words":         {in("keycloak {\ncpus = \"all\"\n}"), `cpus: "all" is no cpuset`, ""},
		"cpuset without quotes":   {in("keycloak {\ncpus = auto\n}"), `auto is no value`, `"auto"`},
		"bad cpuset of a node":    {in("keycloak {\nnode_cpus = [\"1\", \"2,\"]\n}"), `a.hcl:3:19: node_cpus: "2," is no cpuset`, ""},
		"memory without unit":     {in("keycloak {\nmemory = 2\n}"), `a.hcl:3:10: memory: "2" is too little`, "unit"},
		"memory that is none":     {in("keycloak {\nmemory = \"two\"\n}"), `memory: "two" is no size`, ""},
		"image without registry":  {in("keycloak {\nimage = \"keycloak:26\"\n}"), `a.hcl:3:9: image: "keycloak:26" does not name its registry`, `"docker.io/library/keycloak:26"`},
		"image with a space":      {in("keycloak {\nimage = \"quay.io/a b\"\n}"), `"quay.io/a b" is no name of an image`, ""},
		"path without a slash":    {in("keycloak {\nrelative_path = \"auth\"\n}"), `relative_path: "auth" is no path`, ""},
		"path upwards":            {in("keycloak {\nrelative_path = \"/../x\"\n}"), `relative_path: "/../x" is no path`, ""},
		"no admin":                {in("keycloak {\nadmin_user = \" \"\n}"), `admin_user: may not be empty`, ""},
		"no time to start":        {in("keycloak {\nstart_timeout = \"0s\"\n}"), `start_timeout: "0s" is not from 1s`, ""},
		"negative cpu limit":      {in("keycloak {\ncpu_limit = -1\n}"), `cpu_limit takes a number from 0 to 4095, not -1`, ""},

		// Other components.
		"database name":                {in("database \"postgresql\" {\nname = \"a-b\"\n}"), `name: "a-b" is no name for a database`, ""},
		"database setting":             {in("database \"postgresql\" {\nsettings = { \"a b\" = 1 }\n}"), `a.hcl:3:14: settings: "a b" is no name of a setting`, ""},
		"database port":                {in("database \"postgresql\" {\nport = 70000\n}"), `port takes a whole number from 0 to 65535`, ""},
		"proxy port":                   {in("proxy \"traefik\" {\nport = 0\n}"), `port takes a whole number from 1 to 65535`, ""},
		"same port twice":              {in("proxy \"traefik\" {\nport = 8125\n}\ncontainer \"c\" {\nimage = \"docker.io/a/b\"\nports = { 8125 = 1 }\n}"), `a.hcl:7:9: port 8125 is published by the proxy and container "c"`, ""},
		"domain":                       {in("ldap \"openldap\" {\ndomain = \"a b\"\n}"), `domain: "a b" is no domain`, ""},
		"container without image":      {in("container \"c\" {}"), `a.hcl:2:1: container "c" has no image`, ""},
		"container called postgresql":  {in("container \"postgresql\" {\nimage = \"docker.io/a/b\"\n}"), `a.hcl:2:1: container "postgresql" has the name of a component`, ""},
		"container called as a node":   {in("container \"keycloak-server-3\" {\nimage = \"docker.io/a/b\"\n}"), `has the name of a component`, ""},
		"unknown flavor":               {in("database \"mariadb\" {\nflavor = \"scl\"\n}"), `a.hcl:3:10: flavor: unknown value "scl"`, `official, sclorg`},
		"password for an SCL image":    {in("database \"mariadb\" {\nimage = \"quay.io/sclorg/mariadb-105-c9s:latest\"\npassword = \"it's\"\n}"), `a.hcl:4:12: images of flavor "sclorg" refuse the password`, "Letters, digits"},
		"user of an SCL image":         {in("database \"postgresql\" {\nflavor = \"sclorg\"\nuser = \"postgres\"\n}"), `a.hcl:4:8: images of flavor "sclorg" make the user postgres`, ""},
		"health checks too often":      {in("proxy \"traefik\" {\nhealth_interval = \"10ms\"\n}"), `health_interval: "10ms" is not from 1s`, ""},
		"providers that are none":      {in("keycloak {\nproviders = [\"a.jar\", \"b.txt\"]\n}"), `a.hcl:3:23: "b.txt" is no JAR file`, "one by one"},
		"providers of one name":        {in("keycloak {\nproviders = [\"x/a.jar\", \"y/a.jar\"]\n}"), `a.hcl:3:25: x/a.jar and y/a.jar have the same name`, ""},
		"unknown cache":                {in("keycloak {\ncaches = { realm = 5 }\n}"), `a.hcl:3:12: caches: unknown value "realm"`, `Did you mean "realms"?`},
		"cache of nothing":             {in("keycloak {\ncaches = { realms = 0 }\n}"), `caches: realms takes a whole number from 1`, ""},
		"mount that is none":           {in("container \"c\" {\nimage = \"docker.io/a/b\"\nmounts = [\"/srv/a\"]\n}"), `a.hcl:4:11: mounts: "/srv/a" is no mount`, "ro if it is only read"},
		"mount of all there is":        {in("container \"c\" {\nimage = \"docker.io/a/b\"\nmounts = [\"/etc:/x\"]\n}"), `mounts: "/etc:/x" would open /etc of the target`, ""},
		"mount upwards":                {in("container \"c\" {\nimage = \"docker.io/a/b\"\nmounts = [\"/srv/../etc:/x\"]\n}"), `is no absolute path`, ""},
		"waits for what is not there":  {in("container \"c\" {\nimage = \"docker.io/a/b\"\nafter = [\"postgresq\"]\n}"), `a.hcl:4:10: container "c" waits for "postgresq"`, `Did you mean "postgresql"?`},
		"waits for itself":             {in("container \"a\" {\nimage = \"docker.io/a/b\"\nafter = [\"b\"]\n}\ncontainer \"b\" {\nimage = \"docker.io/a/b\"\nafter = [\"a\"]\n}"), `a.hcl:4:9: container "a" waits for itself`, ""},
		"two nodes on the host":        {in("extends = \"baseline\"\nnetwork {\nmode = \"host\"\n}"), `a.hcl:4:8: 2 nodes can't share the network of the target`, "nodes = 1"},
		"translated port on the host":  {in("network {\nmode = \"host\"\n}\ncontainer \"c\" {\nimage = \"docker.io/a/b\"\nports = { 81 = 80 }\n}"), `a.hcl:7:9: on the network of the target no port is translated`, "81"},
		"network mode":                 {in("network {\nmode = \"hst\"\n}"), `mode: unknown value "hst"`, "bridge"},
		"network name":                 {in("network {\nname = \"a b\"\n}"), `name: "a b" is no name for a network`, ""},
		"secret where it is shown":     {in("keycloak {\nheap = sensitive(\"x\")\n}"), `a.hcl:3:8: heap would show a value that is declared sensitive`, ""},
		"sensitive value in the image": {in("keycloak {\nimage = var.i\n}") + "variable \"i\" {\n default = env(\"I\", \"x\")\n sensitive = true\n}", `image would show`, ""},

		// Dataset.
		"unknown size":         {in("dataset {\nsize = \"XL\"\n}"), `a.hcl:3:8: size: unknown value "XL"`, "S, M, L"},
		"small size":           {in("dataset {\nsize = \"m\"\n}"), `size: unknown value "m"`, `Did you mean "M"?`},
		"size and counts":      {in("dataset {\nusers = 5\nsize = \"M\"\n}"), `a.hcl:4:8: dataset has a size and users`, ""},
		"no users":             {in("dataset {\nusers = 0\n}"), `users takes a whole number from 1`, ""},
		"unknown template":     {in("dataset {\ntemplate = \"basline\"\n}"), `template: unknown value "basline"`, `Did you mean "baseline"?`},
		"seed that is no seed": {in("dataset {\nseed = 0.5\n}"), `seed takes a whole number`, ""},

		// Tests.
		"unknown flow":           {test("flow = \"logn\"" + fine), `a.hcl:3:8: flow: unknown flow "logn"`, `Did you mean "login"?`},
		"unknown alias":          {test("flow = \"tokenifo\"" + fine), `unknown flow "tokenifo"`, `Did you mean "tokeninfo"?`},
		"unknown flow in a mix":  {test("mix = { login = 1, refersh = 2 }" + fine), `a.hcl:3:20: mix: unknown flow "refersh"`, `Did you mean "refresh"?`},
		"flow and mix":           {test("flow = \"login\"\nmix = { login = 1 }" + fine), `a.hcl:4:7: test "t" has a flow and a mix`, ""},
		"neither flow nor mix":   {test(fine), `a.hcl:2:1: test "t" has neither a flow nor a mix`, `flow = "login"`},
		"empty mix":              {test("mix = {}" + fine), `a.hcl:3:7: the mix of test "t" is empty`, ""},
		"weight of nothing":      {test("mix = { login = 0 }" + fine), `mix: login takes a number above 0, not 0`, ""},
		"unknown reset":          {test(jwks + "reset = \"reboot\"" + fine), `a.hcl:4:9: reset: unknown value "reboot"`, "none, restart, restore, recreate"},
		"unknown connections":    {test(jwks + "connections = \"new\"" + fine), `connections: unknown value "new"`, "keep, iteration"},
		"negative warm-up":       {test(jwks + "warm_up = \"-5s\"" + fine), `a.hcl:4:11: warm_up: "-5s" is not from 0s`, ""},
		"warm-up without unit":   {test(jwks + "warm_up = 30" + fine), `warm_up: "30" is no duration`, `"30s"`},
		"no timeout":             {test(jwks + "timeout = \"0s\"" + fine), `timeout: "0s" is not from 1ms`, ""},
		"negative sessions":      {test("flow = \"refresh\"\nsessions = -1" + fine), `a.hcl:4:12: sessions takes a whole number from 0`, ""},
		"more sessions than":     {test("flow = \"refresh\"\nsessions = 101" + fine), `a.hcl:4:12: test "t" opens 101 sessions for 100 users`, "reuse_users = true"},
		"sessions for users":     {test("flow = \"refresh\"\nsessions = 2\nload \"closed\" {\nvus = 3\nhold = \"1s\"\n}"), `a.hcl:4:12: test "t" opens 2 sessions for 3 virtual users`, "sessions = 3"},
		"sessions for a rate":    {test("flow = \"refresh\"\nsessions = 2\nload \"rate\" {\nrate = 3\nduration = \"1s\"\nconnections = 5\n}"), `a.hcl:4:12: test "t" opens 2 sessions for 5 virtual users`, ""},
		"more virtual users":     {test("flow = \"refresh\"\nload \"closed\" {\nvus = 101\nhold = \"1s\"\n}"), `a.hcl:5:7: test "t" has 101 virtual users for 100 users`, "reuse_users = true"},
		"ramp over the hold":     {load("closed", "vus = 1\nramp_up = \"2m\"\nhold = \"1m\""), `a.hcl:6:11: ramp_up 2m is longer than the hold of 1m in test "t"`, ""},
		"fewer users than":       {in("extends = \"baseline\"\nremove_tests = [\"refresh\", \"introspect\"]\ndataset {\nsize = \"S\"\n}"), `a.hcl:5:8: test "userinfo" opens 1000 sessions for 100 users`, `sessions = 100 in test "userinfo"`},
		"threshold syntax":       {test(jwks + "thresholds = [\"p95 < 1s\", \"p95 1s\"]" + fine), `a.hcl:4:27: thresholds: "p95 1s": there is no <`, "Write [operation:] metric op value"},
		"threshold metric":       {test(jwks + "thresholds = \"p97 < 1s\"" + fine), `a.hcl:4:14: thresholds: "p97 < 1s": unknown metric "p97"`, "p50, p90"},
		"threshold unit":         {test(jwks + "thresholds = [\"errors < 1\"]" + fine), `"1" is no value that errors can be held against`, `"1%"`},
		"threshold operation":    {test("flow = \"login\"\nthresholds = [\"tokn: p95 < 1s\"]" + fine), `a.hcl:4:15: threshold "tokn: p95 < 1s": test "t" makes no operation "tokn"`, `Did you mean "token"?`},
		"share of no rate":       {test(jwks + "thresholds = [\"rate >= 95%\"]" + fine), `threshold "rate >= 95%": load "closed" of test "t" asks for no rate`, `"rate > 400/s"`},
		"threshold is no text":   {test(jwks + "thresholds = [1, {}]" + fine), `a.hcl:4:18: thresholds takes a list of texts, and a map is in it`, ""},
		"sensitive threshold":    {test(jwks + "thresholds = [sensitive(\"p95 < 1s\")]" + fine), `thresholds would show`, ""},
		"password that is a map": {test(jwks + "password = {}" + fine), `password takes a text, not a map`, ""},

		"threshold block syntax":      {test(jwks + "threshold \"p95 1s\" {}" + fine), `a.hcl:4:11: threshold "p95 1s": there is no <`, "Write [operation:] metric op value"},
		"threshold block operation":   {test(jwks + "threshold \"tokn: p95 < 1s\" { abort = true }" + fine), `a.hcl:4:1: threshold "tokn: p95 < 1s": test "t" makes no operation "tokn"`, "jwks"},
		"threshold block without one": {test(jwks + "threshold {}" + fine), `a.hcl:4:1: threshold needs a label`, `threshold "p95 < 1s" { … }`},
		"threshold block attribute":   {test(jwks + "threshold \"p95 < 1s\" { abrt = true }" + fine), `a.hcl:4:24: unknown attribute "abrt" in threshold "p95 < 1s"`, `Did you mean "abort"?`},
		"share above all":             {test(jwks + "stop_errors = \"150%\"" + fine), `a.hcl:4:15: stop_errors: "150%" is no share`, `"50%"`},
		"negative share":              {test("flow = \"login\"\nlogout_share = -0.1" + fine), `logout_share: "-0.1" is no share`, ""},
		"operation of no refusals":    {test("flow = \"login\"\nthresholds = [\"refused: p95 < 1s\"]" + fine), `makes no operation "refused"`, ""},
		"logouts without logins":      {test(jwks + "logout_share = 0.1" + fine), `a.hcl:4:16: logout_share: there is no login in test "t"`, `flow = "login"`},
		"bad logins without logins":   {test("mix = { jwks = 1, refresh = 1 }\nbad_login_share = 0.1" + fine), `a.hcl:4:19: bad_login_share: there is no login in test "t"`, ""},
		"client authentication":       {test(jwks + "client_auth = \"jwt\"" + fine), `client_auth: unknown value "jwt"`, "post, basic"},
		"HTTP client":                 {test(jwks + "http_client = \"curl\"" + fine), `http_client: unknown value "curl"`, "raw, net/http"},

		// Loads.
		"no load":                 {test(jwks), `a.hcl:2:1: test "t" has no load`, "closed, rate, ladder, capacity, connections"},
		"unknown load":            {load("close", ""), `a.hcl:4:6: unknown load "close"`, `Did you mean "closed"?`},
		"two loads":               {test(jwks + fine + "\nload \"rate\" {}"), `load stands twice in test "t"`, ""},
		"attribute of another":    {load("closed", "rate = 5"), `a.hcl:5:1: unknown attribute "rate" in load "closed"`, "vus, ramp_up"},
		"no vus":                  {load("closed", "hold = \"1s\""), `a.hcl:4:1: load "closed" of test "t" has no vus`, "vus = 10"},
		"no hold":                 {load("closed", "vus = 1"), `load "closed" of test "t" has no hold`, ""},
		"negative vus":            {load("closed", "vus = -3"), `a.hcl:5:7: vus takes a whole number from 1 to 100000, not -3`, ""},
		"hold of nothing":         {load("closed", "hold = \"0s\""), `hold: "0s" is not from 1ms`, ""},
		"negative ramp":           {load("closed", "ramp_up = \"-1s\""), `ramp_up: "-1s" is not from 0s`, ""},
		"endless hold":            {load("closed", "hold = \"200h\""), `hold: "200h" is not from 1ms to 168h`, ""},
		"negative rate":           {load("rate", "rate = -250"), `a.hcl:5:8: rate takes a number from 0.001 to 1000000, not -250`, ""},
		"ramp over the duration":  {load("rate", "rate = 1\nramp_up = \"2m\"\nduration = \"1m\""), `a.hcl:6:11: ramp_up 2m is longer than the duration of 1m in test "t"`, ""},
		"arrivals":                {load("rate", "rate = 1\nduration = \"1m\"\narrivals = \"pareto\""), `a.hcl:7:12: arrivals: unknown value "pareto"`, "even, poisson"},
		"queue of nothing":        {load("rate", "rate = 1\nduration = \"1m\"\nqueue_limit = 0"), `queue_limit takes a whole number from 1`, ""},
		"negative pacing":         {load("closed", "pacing = \"-1s\""), `pacing: "-1s" is not from 0s`, ""},
		"pacing of a rate":        {load("rate", "pacing = \"1s\""), `unknown attribute "pacing" in load "rate"`, ""},
		"search without room":     {load("capacity", "rate = 100\nduration = \"1m\"\nmax_rate = 50"), `a.hcl:7:12: max_rate 50 of test "t" is below its rate 100`, ""},
		"precision of a search":   {load("capacity", "precision = 2"), `a.hcl:5:13: precision: "2" is no share`, `"50%", or 0.5`},
		"no rate":                 {load("rate", "duration = \"1s\""), `load "rate" of test "t" has no rate`, ""},
		"no duration":             {load("rate", "rate = 1"), `load "rate" of test "t" has no duration`, ""},
		"no steps":                {load("ladder", "duration = \"1s\""), `load "ladder" of test "t" has no steps`, ""},
		"empty steps":             {load("ladder", "duration = \"1s\"\nsteps = []"), `a.hcl:6:9: load "ladder" of test "t" has no step`, ""},
		"negative step":           {load("ladder", "steps = [100, -1]"), `steps takes numbers from 0.001`, ""},
		"step that is no number":  {load("ladder", "steps = [100, \"many\"]"), `a.hcl:5:15: steps takes a list of numbers, and a text is in it`, ""},
		"capacity without rate":   {load("capacity", "duration = \"1s\""), `load "capacity" of test "t" has no rate`, ""},
		"half a connection":       {load("connections", "steps = [1, 1.5]\nrequests = 5"), `a.hcl:5:13: connections are whole numbers, not 1.5`, ""},
		"connections without end": {load("connections", "steps = [1]"), `needs requests or a duration, one of the two`, ""},
		"connections, two ends":   {load("connections", "steps = [1]\nrequests = 5\nduration = \"1s\""), `needs requests or a duration, one of the two`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tryScenario(c.src, "x")
			var e *hclfile.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			text := err.Error()
			if !strings.Contains(text, c.want) || !strings.Contains(text, c.hint) {
				t.Errorf("want %q and %q, got:\n%s", c.want, c.hint, text)
			}
			for _, d := range e.Diagnostics {
				if d.Filename != "a.hcl" || d.Line == 0 || d.Snippet == "" {
					t.Errorf("no place: %s", d)
				}
			}
			// validate finds the same.
			_, err = scenarios.Validate([]string{"a.hcl"}, world{files: map[string]string{"a.hcl": c.src}}.options())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("validate: %v", err)
			}
		})
	}
}

// TestOneFaultOneMessage: what follows from a fault is not reported as well.
func TestOneFaultOneMessage(t *testing.T) {
	for name, src := range map[string]string{
		"unknown flow":              test("flow = \"logn\"\nthresholds = [\"token: p95 < 1s\"]" + fine),
		"bad mix":                   test("mix = { logn = 1 }" + fine),
		"bad vus":                   load("closed", "vus = -1\nhold = \"1s\""),
		"bad hold":                  load("closed", "vus = 1\nhold = 30"),
		"bad steps":                 load("ladder", "steps = [-1]\nduration = \"1s\""),
		"unknown load":              load("close", ""),
		"bad memory":                in("keycloak {\nmemory = \"x\"\n}"),
		"bad nodes":                 in("keycloak {\nnodes = 3\nnode_cpus = [\"1\", \"2\", \"3\"]\n}"),
		"bad users":                 in("dataset {\nusers = 0\n}\ntest \"t\" {\nflow = \"refresh\"\nsessions = 500" + fine + "\n}"),
		"size and counts":           in("dataset {\nusers = 5\nsize = \"S\"\n}\ntest \"t\" {\nflow = \"refresh\"\nsessions = 50" + fine + "\n}"),
		"unclosed block":            in("test \"t\" {\nflow = \"login\""),
		"parent in a broken file":   in("extends = \"y\"") + "scenario \"y\" {",
		"unset variable":            test("mix = { login = var.none }"+fine) + "variable \"none\" {}",
		"bad image of a container":  in("container \"c\" {\nimage = \"x\"\n}"),
		"two faults of one literal": in("keycloak {\ncpus = auto\n}"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tryScenario(src, "x")
			var e *hclfile.Error
			if !errors.As(err, &e) || len(e.Diagnostics) != 1 {
				t.Errorf("got:\n%v", err)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct{ src, want string }{
		"little memory":  {in("keycloak {\nmemory = \"512m\"\n}"), `a.hcl:3:10: warning: keycloak may not start with less than 750m of memory`},
		"no limit":       {in("keycloak {\nmemory = \"0\"\n}"), `a.hcl:3:10: warning: keycloak has no memory limit`},
		"literal secret": {in("database \"postgresql\" {\npassword = \"hunter2\"\n}"), `a.hcl:3:12: warning: password is written in the file`},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario(t, c.src, "x")
			text := hclfile.Render(s.Warnings)
			if len(s.Warnings) != 1 || !strings.HasPrefix(text, c.want) || strings.Contains(text, "hunter2") {
				t.Errorf("want %q, got:\n%s", c.want, text)
			}
		})
	}
}

func TestAllFlows(t *testing.T) {
	var text strings.Builder
	for _, f := range scenarios.Flows() {
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			text.WriteString("test \"" + name + "\" {\nflow = \"" + name + "\"\nthresholds = [\"" + f.Operations[0] + ": p95 < 1s\"]" + fine + "\n}\n")
		}
	}
	s := scenario(t, in(text.String()), "x")
	for _, test := range s.Tests {
		f, ok := scenarios.FlowByName(test.Name)
		if !ok || test.Flow != f.Name || f.About == "" || test.NeedsSessions() != f.Sessions {
			t.Errorf("%s: %+v", test.Name, test)
		}
	}
	if len(s.Tests) != 14 {
		t.Errorf("%d tests", len(s.Tests))
	}
	if _, ok := scenarios.FlowByName("nothing"); ok {
		t.Error("a flow that is none")
	}
}
