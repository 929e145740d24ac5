# The baseline made small: it fits a machine with two CPUs and is through in a
# few minutes. Its figures show that everything works, not what a server can do.
scenario "demo" {
  description = "the baseline made small, for a first look on any machine"
  extends     = "baseline"

  # "auto" spreads the components over the CPUs that the target has.
  keycloak {
    cpus = "auto"
  }

  database "postgresql" {
    cpus   = "auto"
    memory = "1g"
  }

  proxy "traefik" {
    cpus = "auto"
  }

  # 1 realm, 10 clients, 100 users.
  dataset {
    size = "S"
  }

  test "login" {
    warm_up = "10s"
    load "closed" {
      vus       = 4
      ramp_up   = "2s"
      hold      = "20s"
      ramp_down = "2s"
    }
  }

  test "userinfo" {
    warm_up  = "10s"
    sessions = 24
    load "closed" {
      vus       = 8
      ramp_up   = "2s"
      hold      = "20s"
      ramp_down = "2s"
    }
  }

  test "refresh" {
    warm_up  = "10s"
    sessions = 24
    load "closed" {
      vus       = 4
      ramp_up   = "2s"
      hold      = "20s"
      ramp_down = "2s"
    }
  }

  test "introspect" {
    warm_up  = "10s"
    sessions = 24
    load "closed" {
      vus       = 8
      ramp_up   = "2s"
      hold      = "20s"
      ramp_down = "2s"
    }
  }
}
