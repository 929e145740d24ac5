scenario "day" {
  extends = "night"
}

scenario "night" {
  extends = "dawn"
}

scenario "dawn" {
  extends = "day"
}
