variable "password" {
  sensitive = true
  default   = "hunter2"
}

locals {
  admin_password = "hunter2"
}

scenario "leaky" {
  keycloak {
    admin_password = local.admin_password
    heap           = "-Dx=${var.password}"
  }
  database "postgresql" {
    password = "hunter2"
    name     = file("secret.txt")
  }
}

target "sut" {
  adress   = "192.0.2.10"
  password = "hunter2"
}
