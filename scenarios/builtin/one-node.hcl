# The baseline with one Keycloak node on the CPUs of the two.
scenario "one-node" {
  description = "one Keycloak node on the CPUs of two"
  extends     = "baseline"

  keycloak {
    nodes = 1
    cpus  = "1,5,2,6"
  }
}
