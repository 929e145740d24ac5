# What to build and measure. benchctl reads every *.hcl file of the folder;
# others are given with -f FILE. Check it with: benchctl validate scenario.hcl
#
# The built-in scenarios are listed by: benchctl scenarios
# and shown with their comments by:     benchctl scenarios -show baseline

variable "image" {
  description = "the Keycloak to measure: -var image=… or BENCHCTL_VAR_image"
  default     = "quay.io/keycloak/keycloak:26.7.3"
}

scenario "mine" {
  description = "one Keycloak node on PostgreSQL, short tests"

  # Everything that is not said here is as in the parent.
  extends = "baseline"

  keycloak {
    image  = var.image
    nodes  = 1
    cpus   = "auto" # or a cpuset of the target: "2-5"
    memory = "2g"
    # env  = { KC_LOG_LEVEL = "warn" }
  }

  database "postgresql" { # or "mariadb"
    cpus   = "auto"
    memory = "1g"
    # settings = { max_connections = "200" }
  }

  proxy "traefik" {
    cpus = "auto"
    port = 8080
  }

  # S is 1 realm, 10 clients, 100 users; M 5, 100, 1,000; L 10, 1,000, 10,000
  # (clients and users in each realm). Or give realms, clients and users.
  dataset {
    size = "S"
  }

  # Tests of the parent that are not wanted.
  remove_tests = ["refresh", "introspect"]

  # A test of the parent by its name: what is given here takes its place.
  test "login" {
    thresholds = ["p95 < 1s", "errors < 1%", "token: p99 < 200ms"]
    load "closed" {
      vus       = 4
      ramp_up   = "5s"
      hold      = "1m"
      ramp_down = "5s"
    }
  }

  test "userinfo" {
    sessions = 100
    load "closed" {
      vus       = 8
      ramp_up   = "5s"
      hold      = "1m"
      ramp_down = "5s"
    }
  }

  # A test of its own: a weighted mix, started at a constant rate whatever the
  # server answers.
  test "mixed" {
    mix      = { login = 1, refresh = 8, userinfo = 4 }
    sessions = 100
    load "rate" {
      rate     = 20
      duration = "1m"
    }
  }
}
