// Package images makes the container images of the lab host where no registry can give them.
//
// The promise: an image has the official name and contract (environment, arguments, user, volumes, stop signal) of the
// one that it stands in for, carries the label benchctl.stand-in, and is built again only when its recipe changed. It
// is not for use outside a lab: what the lab's components never touch (TLS of OpenLDAP, DNS challenges and digest
// authentication of Traefik) is left out.
package images

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"sort"
	"time"
)

// files holds a folder per image: a Containerfile and what it copies.
//
//go:embed files
var files embed.FS

const (
	// StandInLabel marks every image that was built here.
	StandInLabel = "benchctl.stand-in"
	// RecipeLabel holds the hash of the recipe that an image was built from.
	RecipeLabel = "benchctl.recipe"

	// recipeFormat changes when this package builds the same files in another way.
	recipeFormat = "1"
	// codename is the Debian release that all images are made from.
	codename = "bookworm"

	keycloakVersion = "26.7.3"
	// wildflyVersion is the line of RH-SSO 7.4; the drivers are those that its Java 17 and the lab's databases take.
	wildflyVersion   = "9.0.3"
	postgresqlDriver = "42.7.4"
	mariadbDriver    = "2.7.12"
	traefikVersion   = "v3.7.13"
)

// Image is one image of the lab.
type Image struct {
	// Name is the full name with registry and tag.
	Name string
	// Folder is the image's folder below files; "" for the base, which has no Containerfile.
	Folder string
	// Base is the name of the image that it is built on.
	Base string
	// Inputs are what else decides the result, such as the version of what is put in.
	Inputs []string
	// Official is true where a registry may have the image; the others are only steps on the way.
	Official bool
	// Offered is true where labs use the image.
	Offered bool
	// Usual is how long the build takes on two cores.
	Usual time.Duration
}

// Names of the images that are built on.
const (
	baseName     = "localhost/benchctl/base:12"
	jreName      = "localhost/benchctl/jre:17"
	traefikName  = "docker.io/library/traefik:v3.7"
	keycloakName = "quay.io/keycloak/keycloak:" + keycloakVersion
	wildflyName  = "docker.io/jboss/keycloak:" + wildflyVersion
)

// StubName is a small image with a shell, nc and httpd (on port 80, serving /www), for tests that need some container.
const StubName = "localhost/benchctl/stub:1"

// baseArguments are what mmdebstrap makes the base with.
var baseArguments = []string{
	"--variant=minbase",
	"--include=ca-certificates,tzdata",
	`--aptopt=Acquire::Languages "none"`,
	`--aptopt=APT::Install-Recommends "false"`,
	"--dpkgopt=path-exclude=/usr/share/doc/*",
	"--dpkgopt=path-exclude=/usr/share/man/*",
	"--dpkgopt=path-exclude=/usr/share/locale/*",
	"--dpkgopt=path-exclude=/usr/share/info/*",
	`--customize-hook=rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*.bin "$1"/var/log/*.log "$1"/var/log/apt`,
}

// Catalogue lists the images in the order they are built.
func Catalogue() []Image {
	return []Image{
		{Name: baseName, Inputs: append([]string{codename}, baseArguments...), Usual: 50 * time.Second},
		{Name: StubName, Folder: "stub", Base: baseName, Offered: true, Usual: 10 * time.Second},
		{Name: "docker.io/library/postgres:15", Folder: "postgres", Base: baseName, Official: true, Offered: true, Usual: 30 * time.Second},
		{Name: "docker.io/library/mariadb:10.11", Folder: "mariadb", Base: baseName, Official: true, Offered: true, Usual: 25 * time.Second},
		{Name: "docker.io/osixia/openldap:1.5.0", Folder: "openldap", Base: baseName, Official: true, Offered: true, Usual: 15 * time.Second},
		{Name: jreName, Folder: "jre", Base: baseName, Usual: 30 * time.Second},
		{Name: keycloakName, Folder: "keycloak", Base: jreName, Inputs: []string{keycloakVersion}, Official: true, Offered: true, Usual: 30 * time.Second},
		{Name: wildflyName, Folder: "wildfly", Base: jreName, Inputs: []string{wildflyVersion, postgresqlDriver, mariadbDriver}, Official: true, Offered: true, Usual: 60 * time.Second},
		// Last, since its image waits for a compilation that goes on beside all others.
		{Name: traefikName, Folder: "traefik", Base: baseName, Inputs: []string{traefikRecipe()}, Official: true, Offered: true, Usual: 10 * time.Second},
	}
}

// Hashes returns the recipe hash of every image of a catalogue by name. An image's hash covers its base's.
func Hashes(catalogue []Image, folders fs.FS) (map[string]string, error) {
	hashes := map[string]string{}
	for _, image := range catalogue {
		h := sha256.New()
		part := func(s string) { fmt.Fprintf(h, "%d:%s\n", len(s), s) }
		part(recipeFormat)
		part(image.Name)
		if image.Base != "" {
			base, ok := hashes[image.Base]
			if !ok {
				return nil, fmt.Errorf("image %s: its base %s is not listed before it", image.Name, image.Base)
			}
			part(base)
		}
		for _, input := range image.Inputs {
			part(input)
		}
		if image.Folder != "" {
			if err := hashFolder(part, folders, image.Folder); err != nil {
				return nil, fmt.Errorf("image %s: %w", image.Name, err)
			}
		}
		hashes[image.Name] = hex.EncodeToString(h.Sum(nil))[:16]
	}
	return hashes, nil
}

func hashFolder(part func(string), folders fs.FS, folder string) error {
	var names []string
	err := fs.WalkDir(folders, folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read its files: %w", err)
	}
	sort.Strings(names)
	for _, name := range names {
		content, err := fs.ReadFile(folders, name)
		if err != nil {
			return fmt.Errorf("read its files: %w", err)
		}
		part(name)
		part(string(content))
	}
	return nil
}

// folders is the tree that Image.Folder is a folder of.
func folders() fs.FS {
	sub, err := fs.Sub(files, "files")
	if err != nil {
		panic(err) // The name is a constant of the embed directive above.
	}
	return sub
}
