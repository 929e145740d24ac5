# What a first attempt may look like.
scenario "soak" {
  extends = "mariadb"

  keycloack {
    cpus = "2-5"
  }
  keycloak {
    nodes    = 3
    cpus     = auto
    memmory  = "2g"
    env      = { KC_LOG_LEVEL = "warn", KC_DB_PASSWORD = "hunter2" }
    pasword  = "hunter2"
    log-level = "warn"
  }
  test "login" {
    flow       = "logn"
    thresholds = ["p95 < 1s", "errors < 1", "p97 < 2s"]
    load "closed" {
      vus  = -3
      hold = 600
    }
  }
  test "mixed" {
    mix = { login = 1, refersh = 8 }
    load "rate" {
      rate = 250
    }
  }
}
