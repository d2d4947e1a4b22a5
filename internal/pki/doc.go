// Package pki makes the certificates of held secrets: an authority of the Instance, and a certificate for each host that a held secret
// is bound to. With them a Custodian opens the connections to those hosts.
//
// It decides what is due and makes it. It reads and writes nothing, asks no clock, and knows neither Secrets nor the configuration: the
// caller keeps what it makes. A private key never prints.
//
// Sizes, lives and extensions are those of the source document: ECDSA on P-256, 16 random bytes of serial number, an hour of tolerance for
// clocks, 3650 days for the authority and 365 for a host, which is made anew when 30 days or less are left.
package pki
