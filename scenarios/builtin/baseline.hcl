# The lab that all others are compared with: two Keycloak nodes behind Traefik
# on PostgreSQL, pinned to CPUs of their own on a machine with eight, and the
# four tests of the published series with their virtual users and durations.
#
# The published series published its proxy on port 80; here it is 8080, which
# needs no root. Set port in proxy "traefik" to change it.
scenario "baseline" {
  description = "two Keycloak nodes behind Traefik on PostgreSQL"

  keycloak {
    image     = "quay.io/keycloak/keycloak:26.7.3"
    nodes     = 2
    node_cpus = ["1,5", "2,6"] # one cpuset for each node
    memory    = "2g"           # of each node

    # The lab's own passwords, not worth hiding unless you say otherwise.
    admin_user     = "admin"
    admin_password = env("BENCHCTL_ADMIN_PASSWORD", "admin")
  }

  database "postgresql" {
    image    = "docker.io/library/postgres:15"
    cpus     = "3,7"
    memory   = "4g"
    name     = "keycloak"
    user     = "keycloak"
    password = env("BENCHCTL_DATABASE_PASSWORD", "keycloak")
  }

  proxy "traefik" {
    image      = "docker.io/library/traefik:v3.7"
    cpus       = "0,4"
    port       = 8080
    access_log = true
  }

  # 5 realms, each with 100 clients and 1,000 users: size M.
  dataset {
    template = "baseline"
    size     = "M"
  }

  # Page, form, code exchange; a new connection for each login.
  test "login" {
    flow        = "login"
    connections = "iteration"
    load "closed" {
      vus       = 12
      ramp_up   = "30s"
      hold      = "10m"
      ramp_down = "30s"
    }
  }

  # The others pick one of 1,000 sessions that were opened before.
  test "userinfo" {
    flow     = "userinfo"
    sessions = 1000
    load "closed" {
      vus       = 20
      ramp_up   = "30s"
      hold      = "10m"
      ramp_down = "30s"
    }
  }

  test "refresh" {
    flow     = "refresh"
    sessions = 1000
    load "closed" {
      vus       = 10
      ramp_up   = "30s"
      hold      = "10m"
      ramp_down = "30s"
    }
  }

  # Called tokeninfo in older reports.
  test "introspect" {
    flow     = "introspect"
    sessions = 1000
    load "closed" {
      vus       = 25
      ramp_up   = "30s"
      hold      = "10m"
      ramp_down = "30s"
    }
  }
}
