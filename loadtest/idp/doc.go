// Package idp promises an OpenID Connect server that speaks as Keycloak 26
// does, small enough to run beside the load that is aimed at it: the same
// paths with and without /auth, the same dialogue with the same cookies and
// the same answers to mistakes (200 for a wrong password in the browser's
// form, {"active":false} for a token that is none of the caller's, 400
// cookie_not_found for a jar that lost its cookies), and tokens whose
// signatures verify against its JWKS. Every realm name exists; who lives there
// is asked of Accounts. An administrator makes, reads, lists and removes users
// and clients below /admin/realms/{realm}; what is made there is known there
// alone, it cannot log in, and documents have at most 4 KiB.
//
// It is there to calibrate a load engine, to show one without containers, and
// for tests; its answers can be made slow, failing or stalled on purpose
// (Shape), and it records when requests arrived. Its memory is bounded however
// long it runs: the sessions that were used least recently are forgotten.
//
// It is not for protecting anything: passwords are compared as plain text
// unless hashing is asked for, all realms share one key, nothing is stored. Nor
// do its times say anything about Keycloak's.
//
// Two things differ from Keycloak's defaults on purpose. A refresh token can
// be used once (Keycloak's revokeRefreshToken), because a client that doesn't
// keep the new token would go unnoticed otherwise; ReuseRefreshTokens changes
// that. And tokens are signed with ES256: an RS256 signature takes about
// 1.3 ms of a core, one of ES256 0.04 ms, and a login needs two, so with RS256
// a load of logins would mostly measure RSA. RS256, Keycloak's default, is one
// option away.
package idp
