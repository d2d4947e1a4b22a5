package images

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"time"

	authutil "github.com/containerd/containerd/v2/core/remotes/docker/auth"
	remoteserrors "github.com/containerd/containerd/v2/core/remotes/errors"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/moby/buildkit/session/auth"
	"google.golang.org/grpc"
)

// authServer answers a builder's questions for registry credentials out of a keychain. It is BuildKit's own provider in small,
// for two reasons: that one writes a seed file into the user's docker configuration, and it fetches tokens through a transport
// of its own, which knows nothing of ours.
type authServer struct {
	auth.UnimplementedAuthServer
	keychain authn.Keychain
	client   *http.Client
	target   name.Reference // the image that is pushed
	seed     []byte
}

func newAuthServer(keychain authn.Keychain, transport http.RoundTripper, target name.Reference) *authServer {
	seed := make([]byte, 32)
	rand.Read(seed) //nolint:errcheck // never fails, says its documentation
	return &authServer{keychain: keychain, client: &http.Client{Transport: transport}, target: target, seed: seed}
}

// Register makes the server part of a build session.
func (s *authServer) Register(server *grpc.Server) { auth.RegisterAuthServer(server, s) }

// dockerHub is the host under which BuildKit asks for the credentials of docker.io.
const dockerHub = "registry-1.docker.io"

func (s *authServer) config(ctx context.Context, host string) (*authn.AuthConfig, error) {
	if host == dockerHub {
		host = name.DefaultRegistry
	}
	var resource authn.Resource = s.target.Context()
	if host != s.target.Context().RegistryStr() {
		registry, err := name.NewRegistry(host)
		if err != nil {
			return nil, err
		}
		resource = registry
	}
	authenticator, err := authn.Resolve(ctx, s.keychain, resource)
	if err != nil {
		return nil, err
	}
	return authn.Authorization(ctx, authenticator)
}

func credentials(cfg *authn.AuthConfig) (user, secret string) {
	if cfg.IdentityToken != "" {
		return "", cfg.IdentityToken
	}
	return cfg.Username, cfg.Password
}

// Credentials gives user and password to the builder: registries with basic authentication need them there.
func (s *authServer) Credentials(ctx context.Context, req *auth.CredentialsRequest) (*auth.CredentialsResponse, error) {
	cfg, err := s.config(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	user, secret := credentials(cfg)
	return &auth.CredentialsResponse{Username: user, Secret: secret}, nil
}

// FetchToken fetches a token for the builder, so that the password stays here.
func (s *authServer) FetchToken(ctx context.Context, req *auth.FetchTokenRequest) (*auth.FetchTokenResponse, error) {
	cfg, err := s.config(ctx, req.Host)
	if err != nil {
		return nil, err
	}
	if cfg.RegistryToken != "" {
		return tokenResponse(cfg.RegistryToken, time.Time{}, 0), nil
	}
	opts := authutil.TokenOptions{Realm: req.Realm, Service: req.Service, Scopes: req.Scopes}
	opts.Username, opts.Secret = credentials(cfg)
	if opts.Secret != "" {
		res, err := authutil.FetchTokenWithOAuth(ctx, s.client, nil, "jr2", opts)
		if err == nil {
			return tokenResponse(res.AccessToken, res.IssuedAt, res.ExpiresInSeconds), nil
		}
		if !withoutPost(err) {
			return nil, err
		}
	}
	res, err := authutil.FetchToken(ctx, s.client, nil, opts)
	if err != nil {
		return nil, err
	}
	return tokenResponse(res.Token, res.IssuedAt, res.ExpiresInSeconds), nil
}

// withoutPost says whether the registry knows only the older way to fetch a token, by GET.
func withoutPost(err error) bool {
	var status remoteserrors.ErrUnexpectedStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.StatusCode {
	case http.StatusMethodNotAllowed, http.StatusNotFound, http.StatusUnauthorized:
		return true
	}
	return false
}

func tokenResponse(token string, issued time.Time, seconds int) *auth.FetchTokenResponse {
	if seconds == 0 {
		seconds = 60 // https://distribution.github.io/distribution/spec/auth/token/
	}
	res := &auth.FetchTokenResponse{Token: token, ExpiresIn: int64(seconds)}
	if !issued.IsZero() {
		res.IssuedAt = issued.Unix()
	}
	return res
}

// GetTokenAuthority gives a key by which the builder binds the tokens that it keeps to this session.
func (s *authServer) GetTokenAuthority(_ context.Context, req *auth.GetTokenAuthorityRequest) (*auth.GetTokenAuthorityResponse, error) {
	return &auth.GetTokenAuthorityResponse{PublicKey: s.key(req.Host, req.Salt)[ed25519.SeedSize:]}, nil
}

// VerifyTokenAuthority proves that this session still holds the key. The answer has NaCl's form: signature, then message.
func (s *authServer) VerifyTokenAuthority(_ context.Context, req *auth.VerifyTokenAuthorityRequest) (*auth.VerifyTokenAuthorityResponse, error) {
	signature := ed25519.Sign(s.key(req.Host, req.Salt), req.Payload)
	return &auth.VerifyTokenAuthorityResponse{Signed: append(signature, req.Payload...)}, nil
}

func (s *authServer) key(host string, salt []byte) ed25519.PrivateKey {
	mac := hmac.New(sha256.New, s.seed)
	mac.Write([]byte(host))
	mac.Write(salt)
	return ed25519.NewKeyFromSeed(mac.Sum(nil))
}
