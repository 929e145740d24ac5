# Where labs are built. benchctl finds this file by its name; any other is
# given with -inventory FILE. Check it with: benchctl validate inventory.hcl

target "sut" {
  address       = "192.0.2.10"        # host or host:port; change it to your machine
  user          = "root"              # or another user, with become below
  identity_file = "~/.ssh/id_ed25519" # left out: the agent and the usual files

  # become = "sudo"                   # for a user who is not root
  # jump   = ["bench@bastion.example.org"]

  # The machine's host key must be in ~/.ssh/known_hosts, which it is once you
  # have logged in by hand.
  # known_hosts = ["~/.ssh/known_hosts"]

  # Components keep their data below this folder.
  # data_dir = "/var/lib/benchctl"

  # A login for images. Secrets come from the environment or a file, so that
  # this file can be shared.
  # registry "registry.redhat.io" {
  #   username = env("RH_USER")
  #   password = env("RH_PASSWORD")
  # }
}

# A second target; with several, -target NAME says which. This one is the
# machine that benchctl runs on.
# target "here" {
#   connection = "local"
# }
