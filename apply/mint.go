package apply

// MintAnnotation makes a Secret one whose values are made once, in the cluster: a YAML mapping of keys to generators, such as
// "VAULT_KEY: hex:32". See Mint.
const MintAnnotation = "jr2.dev/mint"
