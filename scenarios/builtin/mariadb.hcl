# The baseline on MariaDB, on the CPUs that PostgreSQL has there.
scenario "mariadb" {
  description = "the baseline on MariaDB"
  extends     = "baseline"

  database "mariadb" {
    image    = "docker.io/library/mariadb:10.11"
    cpus     = "3,7"
    memory   = "4g"
    name     = "keycloak"
    user     = "keycloak"
    password = env("BENCHCTL_DATABASE_PASSWORD", "keycloak")
  }
}
