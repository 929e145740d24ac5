scenario "open" {
  test "login" {
    flow = "login"
