package scenarios

import (
	"fmt"
	"slices"

	"github.com/benchctl/benchctl/inventory/hclfile"
)

// draft is a scenario while the layers of its chain are put on top of each
// other, outermost parent first.
type draft struct {
	layer
	places hclfile.Places
}

func newDraft() *draft {
	return &draft{layer: layer{Scenario: blank()}, places: hclfile.Places{}}
}

// add puts one scenario block on top.
func (d *draft) add(e *entry, level int, scope *hclfile.Scope, report *hclfile.Report) {
	dec := &hclfile.Decoder{File: e.file, Scope: scope, Report: report, Places: d.places, Level: level}
	d.removeTests, d.removeContainers = nil, nil
	dec.Place("", e.block.DefRange())
	what := fmt.Sprintf("scenario %q", e.name)
	before := d.Generation
	blocks := hclfile.Decode(dec, "", what, e.block.Body, scenarioAttrs, scenarioKinds, &d.layer)
	d.remove(dec, "test", "remove_tests", d.removeTests)
	d.remove(dec, "container", "remove_containers", d.removeContainers)
	if after := d.Generation; after != before && contains(generations, after) {
		// What was inherited was said for another server; this layer's own
		// blocks come next.
		d.changeGeneration(after)
		for _, path := range []string{"keycloak/image", "keycloak/env", "keycloak/features", "keycloak/providers", "keycloak/caches", "keycloak/relative_path", "dataset/hash"} {
			d.places.Forget(path)
		}
	}
	for _, b := range blocks {
		addBlock[b.Type](d, dec, b)
	}
}

// addBlock puts one block of a scenario on top of what is there.
var addBlock = map[string]func(*draft, *hclfile.Decoder, hclfile.Block){
	"keycloak":  (*draft).addKeycloak,
	"database":  (*draft).addDatabase,
	"proxy":     (*draft).addProxy,
	"ldap":      (*draft).addLDAP,
	"container": (*draft).addContainer,
	"network":   (*draft).addNetwork,
	"dataset":   (*draft).addDataset,
	"test":      (*draft).addTest,
}

// at tells whether the attribute at path was written in this very layer.
func (d *draft) at(dec *hclfile.Decoder, path string) bool {
	p, ok := d.places[path]
	return ok && p.Level == dec.Level
}

func (d *draft) addKeycloak(dec *hclfile.Decoder, b hclfile.Block) {
	dec.Place("keycloak", b.DefRange())
	hclfile.Decode(dec, "keycloak", "keycloak", b.Body, keycloakAttrs, nil, &d.Keycloak)
	// One cpuset for all nodes takes the place of inherited ones for each.
	if d.at(dec, "keycloak/cpus") && !d.at(dec, "keycloak/node_cpus") {
		d.Keycloak.NodeCPUs, d.Keycloak.NodeCPUsSource = nil, ""
		d.places.Forget("keycloak/node_cpus")
	}
}

func (d *draft) addDatabase(dec *hclfile.Decoder, b hclfile.Block) {
	if d.Database.Kind != b.Label {
		d.Database = blankDatabase(b.Label)
		d.places.Forget("database")
	}
	dec.Place("database", b.DefRange())
	hclfile.Decode(dec, "database", fmt.Sprintf("database %q", b.Label), b.Body, databaseAttrs, nil, &d.Database)
}

func (d *draft) addProxy(dec *hclfile.Decoder, b hclfile.Block) {
	if d.Proxy == nil {
		d.Proxy = blankProxy()
	}
	dec.Place("proxy", b.DefRange())
	hclfile.Decode(dec, "proxy", fmt.Sprintf("proxy %q", b.Label), b.Body, proxyAttrs, nil, d.Proxy)
}

func (d *draft) addLDAP(dec *hclfile.Decoder, b hclfile.Block) {
	if d.LDAP == nil {
		d.LDAP = blankLDAP()
	}
	dec.Place("ldap", b.DefRange())
	hclfile.Decode(dec, "ldap", fmt.Sprintf("ldap %q", b.Label), b.Body, ldapAttrs, nil, d.LDAP)
}

func (d *draft) addNetwork(dec *hclfile.Decoder, b hclfile.Block) {
	dec.Place("network", b.DefRange())
	hclfile.Decode(dec, "network", "network", b.Body, networkAttrs, nil, &d.Network)
}

func (d *draft) addContainer(dec *hclfile.Decoder, b hclfile.Block) {
	i := indexOf(d.Containers, b.Label, containerName)
	if i < 0 {
		i = len(d.Containers)
		d.Containers = append(d.Containers, Container{Name: b.Label})
	}
	path := "container/" + b.Label
	dec.Place(path, b.DefRange())
	hclfile.Decode(dec, path, fmt.Sprintf("container %q", b.Label), b.Body, containerAttrs, nil, &d.Containers[i])
}

func (d *draft) addDataset(dec *hclfile.Decoder, b hclfile.Block) {
	dec.Place("dataset", b.DefRange())
	hclfile.Decode(dec, "dataset", "dataset", b.Body, datasetAttrs, nil, &d.Dataset)
	counted := ""
	for _, name := range []string{"realms", "clients", "users"} {
		if d.at(dec, "dataset/"+name) {
			counted = name
		}
	}
	sized := d.at(dec, "dataset/size")
	switch {
	case sized && counted != "":
		dec.Report.Errorf(d.places.Find("dataset/size"), "Keep the size, or the counts.", "dataset has a size and %s", counted)
		d.places.Spoil("dataset/size")
	case counted != "":
		d.Dataset.Size = ""
		d.places.Forget("dataset/size")
	case sized:
		for _, s := range sizes {
			if s.Name == d.Dataset.Size {
				d.Dataset.Realms, d.Dataset.Clients, d.Dataset.Users = s.Realms, s.Clients, s.Users
			}
		}
		for _, name := range []string{"realms", "clients", "users"} {
			d.places.Forget("dataset/" + name)
		}
	}
}

func (d *draft) addTest(dec *hclfile.Decoder, b hclfile.Block) {
	i := indexOf(d.Tests, b.Label, testName)
	if i < 0 {
		i = len(d.Tests)
		d.Tests = append(d.Tests, blankTest(b.Label))
	}
	t := &d.Tests[i]
	path := "test/" + b.Label
	dec.Place(path, b.DefRange())
	t.Source = sourceOf(dec.File, b.DefRange())
	inherited := len(t.Thresholds) + len(t.AbortOn)
	blocks := hclfile.Decode(dec, path, fmt.Sprintf("test %q", b.Label), b.Body, testAttrs, testKinds, t)
	listed := d.at(dec, path+"/thresholds")
	if inherited > 0 && (listed || slices.ContainsFunc(blocks, isObjective)) {
		// Objectives are replaced together, whichever way they are written.
		t.AbortOn = nil
		d.places.Forget(path + "/threshold")
		if !listed {
			t.Thresholds = nil
			d.places.Forget(path + "/thresholds")
		}
	}
	for _, block := range blocks {
		if isObjective(block) {
			d.addObjective(dec, path+"/threshold", block, t)
			continue
		}
		d.addLoad(dec, path+"/load", block, t)
	}
	flow, mix := d.at(dec, path+"/flow"), d.at(dec, path+"/mix")
	switch {
	case flow && mix:
		dec.Report.Errorf(d.places.Find(path+"/mix"), "Keep the flow, or the mix.", "test %q has a flow and a mix", b.Label)
	case flow:
		t.Mix = nil
		d.places.Forget(path + "/mix")
	case mix:
		t.Flow = ""
		d.places.Forget(path + "/flow")
	}
}

func isObjective(b hclfile.Block) bool { return b.Type == "threshold" }

// addLoad merges with a load of the same kind and replaces any other.
func (d *draft) addLoad(dec *hclfile.Decoder, path string, b hclfile.Block, t *Test) {
	if t.Load.Kind != b.Label {
		t.Load = LoadModel{Kind: b.Label}
		d.places.Forget(path)
	}
	dec.Place(path, b.DefRange())
	hclfile.Decode(dec, path, fmt.Sprintf("load %q", b.Label), b.Body, loadAttrs[b.Label], nil, &t.Load)
}

// remove drops inherited tests or containers.
func (d *draft) remove(dec *hclfile.Decoder, block, attr string, names []string) {
	for i, name := range names {
		var known []string
		switch block {
		case "test":
			known = namesOf(d.Tests, testName)
			d.Tests = without(d.Tests, name, testName)
		case "container":
			known = namesOf(d.Containers, containerName)
			d.Containers = without(d.Containers, name, containerName)
		}
		if len(known) == 0 || !contains(known, name) {
			at := d.places.Find(fmt.Sprintf("%s/%d", attr, i))
			dec.Report.Errorf(at, hclfile.DidYouMean(name, known, block+"s"), "%s: there is no %s %q to remove", attr, block, name)
		}
		d.places.Forget(block + "/" + name)
	}
}

func testName(t Test) string           { return t.Name }
func containerName(c Container) string { return c.Name }

func indexOf[T any](list []T, name string, of func(T) string) int {
	for i, e := range list {
		if of(e) == name {
			return i
		}
	}
	return -1
}

func namesOf[T any](list []T, of func(T) string) []string {
	var names []string
	for _, e := range list {
		names = append(names, of(e))
	}
	return names
}

func without[T any](list []T, name string, of func(T) string) []T {
	var rest []T
	for _, e := range list {
		if of(e) != name {
			rest = append(rest, e)
		}
	}
	return rest
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}
