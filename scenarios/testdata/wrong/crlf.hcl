# A file from Windows.
scenario "win" {
	keycloak {
		cpus = "x"
	}
}
