// Package dataset promises that an identity server holds exactly the realms,
// clients and users that a specification says, under names, secrets and
// passwords that anybody can compute again from the specification alone: the
// importer that writes them, the load engine that logs in with them and the
// small server that answers without a database all agree without exchanging a
// file.
//
// It is not for accounts of people: every secret follows from a small seed, so
// whoever knows the seed knows all of them. It doesn't describe what a realm
// is made of either; that is the template's part (scenarios/templates).
package dataset
