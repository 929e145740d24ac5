package main

import (
	"context"
	"flag"
	"fmt"
	"net"

	"github.com/benchctl/benchctl/loadtest/dataset"
	"github.com/benchctl/benchctl/loadtest/idp"
)

func idpCommand() *command {
	return &command{
		name:    "idp",
		summary: "serve a small OpenID Connect server that speaks as Keycloak does",
		details: `It serves every realm name, with or without /auth, and the clients and users of
the built-in dataset. It is for calibration, demonstrations and tests, not for
protecting anything.

Delays: 10ms, uniform:5ms-20ms, exp:10ms, lognormal:10ms,0.5.
Stalls: at=10s,for=1s and, if wished, every=30s.`,
		flags: func(fs *flag.FlagSet) action {
			listen := fs.String("listen", "127.0.0.1:9080", "`ADDRESS` to listen on")
			latency := fs.String("latency", "", "`DELAY` before each answer")
			errorShare := fs.Float64("error-share", 0, "`SHARE` of the answers that fail, 0 to 1")
			stall := fs.String("stall", "", "`STALL` of the whole server: requests wait until it is over")
			seed := fs.Int64("seed", dataset.DefaultSeed, "`SEED` of the dataset and of what is drawn")
			signing := fs.String("signing", idp.ES256, "`ALGORITHM` of the tokens: ES256 or RS256")
			reuse := fs.Bool("reuse-refresh-tokens", false, "let a refresh token be used more than once")
			return func(ctx context.Context, a *app, args []string) error {
				if len(args) > 0 {
					return usagef("unexpected argument %q", args[0])
				}
				delay, err := idp.ParseDelay(*latency)
				if err != nil {
					return usagef("-latency: %w", err)
				}
				pause, err := idp.ParseStall(*stall)
				if err != nil {
					return usagef("-stall: %w", err)
				}
				server, err := idp.New(idp.Options{
					Accounts:           dataset.Accounts{Seed: *seed},
					Shape:              idp.Shape{Latency: delay, ErrorShare: *errorShare, Stall: pause, Seed: *seed},
					Signing:            *signing,
					ReuseRefreshTokens: *reuse,
				})
				if err != nil {
					return asUsage(err)
				}
				listener, err := net.Listen("tcp", *listen)
				if err != nil {
					return fmt.Errorf("listen: %w\nIs something else using it? Choose another address with -listen", err)
				}
				fmt.Fprintf(a.stderr, "Serving on http://%s (realms of any name, clients app_NNNNNN, users user_NNNNNN). Ctrl-C ends it.\n", listener.Addr())
				return server.Serve(ctx, listener)
			}
		},
	}
}
