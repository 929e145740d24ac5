// Package hclfile is what inventory and scenario files have in common: it
// reads them, evaluates their variables, locals and functions, decodes blocks
// by tables of attributes, and says what is wrong as
//
//	FILE:LINE:COL: what is wrong
//	   12 |   cpuz = "2-5"
//	      |   ^^^^
//	  What to do about it.
//
// It knows no target and no scenario.
//
// # What is secret
//
// Attributes, not values, decide what is shown. An attribute made by Secret
// (a password, a passphrase) ends in a secret.String and never shows. Every
// other attribute is plain: it takes what env() and file() give like any
// other text, so that address = env("SUT_HOST") works, and may be shown. Two
// marks travel with a value through functions and templates:
//
//   - outside: it came from env(), file() or a BENCHCTL_VAR_ variable. A
//     secret attribute whose value carries no mark was written in the file,
//     which earns a warning. No diagnostic prints an outside value. Maps of
//     environment variables (env = { … }) keep marked values apart, as
//     secrets.
//   - sensitive: it came from a variable declared with sensitive = true or
//     from the function sensitive(). A plain attribute refuses it, since that
//     attribute would show it.
//
// Source snippets leave out what is written after an attribute that is named
// like a secret.
package hclfile
