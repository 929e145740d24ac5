package idp

import (
	"html/template"
	"strings"
)

// page answers with HTML.
func (q *request) page(status int, body string) {
	h := q.w.Header()
	h["Content-Security-Policy"] = []string{"frame-src 'self'; frame-ancestors 'self'; object-src 'none';"}
	h["Content-Language"] = []string{"en"}
	q.raw(status, "text/html;charset=utf-8", []byte(body))
}

// resources is where the theme's files would be; nothing is served there, and
// no load engine fetches them.
const resources = "/resources/9xk2p"

// escape writes text so that it may stand in an attribute: & as &amp;, which
// is how Keycloak writes the form's action and what a client must undo.
var escape = template.HTMLEscapeString

// loginPage is the page with the form kc-form-login: as large as Keycloak's
// own, so that reading it costs what it costs there.
//
// It is modelled on the page of the theme keycloak.v2, which is licensed under
// the Apache License 2.0.
func loginPage(r route, action, username, message string) string {
	var b strings.Builder
	b.Grow(8 << 10)
	base := r.prefix + resources
	head(&b, base, "Sign in to "+r.realm)
	b.WriteString(`        <main class="pf-v5-c-login__main">
          <div class="pf-v5-c-login__main-header">
            <h1 class="pf-v5-c-title pf-m-3xl" id="kc-page-title">
        Sign in to your account

            </h1>
          </div>
          <div class="pf-v5-c-login__main-body">
`)
	invalid := "false"
	if message != "" {
		invalid = "true"
	}
	b.WriteString(`        <div id="kc-form">
          <div id="kc-form-wrapper">
              <form id="kc-form-login" class="pf-v5-c-form" onsubmit="login.disabled = true; return true;" action="`)
	b.WriteString(escape(action))
	b.WriteString(`" method="post" novalidate="novalidate">

<div class="pf-v5-c-form__group">
    <div class="pf-v5-c-form__label">
        <label for="username" class="pf-v5-c-form__label-text">
            <span class="pf-v5-c-form__label-text">
                Username or email
            </span>
        </label>
    </div>
    <span class="pf-v5-c-form-control">
        <input id="username" name="username" value="`)
	b.WriteString(escape(username))
	b.WriteString(`" type="text" autocomplete="username" autofocus
                aria-invalid="` + invalid + `"/>
    </span>
    <div id="input-error-container-username">
`)
	if message != "" {
		b.WriteString(`        <div class="pf-v5-c-form__helper-text" aria-live="polite">
            <div class="pf-v5-c-helper-text pf-m-error">
                <span class="pf-v5-c-helper-text__item-text" id="input-error-username">
                    ` + escape(message) + `
                </span>
            </div>
        </div>
`)
	}
	b.WriteString(`    </div>
</div>

<div class="pf-v5-c-form__group">
    <div class="pf-v5-c-form__label">
        <label for="password" class="pf-v5-c-form__label-text">
            <span class="pf-v5-c-form__label-text">
                Password
            </span>
        </label>
    </div>
    <div class="pf-v5-c-input-group">
      <div class="pf-v5-c-input-group__item pf-m-fill">
        <span class="pf-v5-c-form-control">
          <input id="password" name="password" value="" type="password" autocomplete="current-password"
                  aria-invalid="` + invalid + `"/>
        </span>
      </div>
      <div class="pf-v5-c-input-group__item">
        <button class="pf-v5-c-button pf-m-control" type="button" aria-label="Show password"
                aria-controls="password" data-password-toggle
                data-icon-show="fa-eye fas" data-icon-hide="fa-eye-slash fas"
                data-label-show="Show password" data-label-hide="Hide password" id="password-show-password">
            <i class="fa-eye fas" aria-hidden="true"></i>
        </button>
      </div>
    </div>
    <div class="pf-v5-c-form__helper-text" aria-live="polite"></div>
    <div id="input-error-container-password"></div>
</div>

                <div class="pf-v5-c-form__group"></div>

                  <input type="hidden" id="id-hidden-input" name="credentialId"/>
                  <div class="pf-v5-c-form__group">
                    <div class="pf-v5-c-form__actions">
  <button class="pf-v5-c-button pf-m-primary pf-m-block" name="login" id="kc-login" type="submit">Sign In</button>
                    </div>
                  </div>
              </form>
            </div>
        </div>
          </div>
          <div class="pf-v5-c-login__main-footer">
          </div>
        </main>
`)
	foot(&b)
	return b.String()
}

// errorPage is what Keycloak shows instead of a form.
func errorPage(message string) string {
	return plainPage("We are sorry...", "kc-error-message", message)
}

func plainPage(title, id, message string) string {
	var b strings.Builder
	head(&b, resources, title)
	b.WriteString(`        <main class="pf-v5-c-login__main">
          <div class="pf-v5-c-login__main-header">
            <h1 class="pf-v5-c-title pf-m-3xl" id="kc-page-title">` + escape(title) + `</h1>
          </div>
          <div class="pf-v5-c-login__main-body">
        <div id="` + id + `">
            <p class="instruction">` + escape(message) + `</p>
        </div>
          </div>
        </main>
`)
	foot(&b)
	return b.String()
}

func head(b *strings.Builder, base, title string) {
	b.WriteString(`<!DOCTYPE html>
<html class="login-pf" lang="en" dir="ltr">
<head>
    <meta charset="utf-8">
    <meta http-equiv="Content-Type" content="text/html; charset=UTF-8" />
    <meta name="robots" content="noindex, nofollow">
    <meta name="color-scheme" content="light dark">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>` + escape(title) + `</title>
`)
	b.WriteString(`    <link rel="icon" href="` + base + `/login/keycloak.v2/img/favicon.ico" />
`)
	for _, sheet := range []string{"vendor/patternfly-v5/patternfly.min.css", "vendor/patternfly-v5/patternfly-addons.css"} {
		b.WriteString(`    <link href="` + base + `/common/keycloak/` + sheet + `" rel="stylesheet" />
`)
	}
	b.WriteString(`    <link href="` + base + `/login/keycloak.v2/css/styles.css" rel="stylesheet" />
    <script type="importmap">
        {
            "imports": {
                "rfc4648": "` + base + `/common/keycloak/vendor/rfc4648/rfc4648.js"
            }
        }
    </script>
      <script type="module" async blocking="render">
          const DARK_MODE_CLASS = "pf-v5-theme-dark";
          const mediaQuery = window.matchMedia("(prefers-color-scheme: dark)");

          updateDarkMode(mediaQuery.matches);
          mediaQuery.addEventListener("change", (event) => updateDarkMode(event.matches));

          function updateDarkMode(isEnabled) {
            const { classList } = document.documentElement;

            if (isEnabled) {
              classList.add(DARK_MODE_CLASS);
            } else {
              classList.remove(DARK_MODE_CLASS);
            }
          }
      </script>
    <script type="module" src="` + base + `/login/keycloak.v2/js/passwordVisibility.js"></script>
    <script type="module">
        import { startSessionPolling } from "` + base + `/login/keycloak.v2/js/authChecker.js";

        startSessionPolling();
    </script>
    <script type="module">
        document.addEventListener("click", (event) => {
            const link = event.target.closest("a[data-once-link]");

            if (!link) {
                return;
            }

            if (link.getAttribute("aria-disabled") === "true") {
                event.preventDefault();
                return;
            }

            const { disabledClass } = link.dataset;

            if (disabledClass) {
                link.classList.add(...disabledClass.trim().split(/\s+/));
            }

            link.setAttribute("role", "link");
            link.setAttribute("aria-disabled", "true");
        });
    </script>
</head>

<body id="keycloak-bg" class="" data-page-id="login-login">
<div class="pf-v5-c-login">
  <div class="pf-v5-c-login__container">
    <header id="kc-header" class="pf-v5-c-login__header">
      <div id="kc-header-wrapper" class="pf-v5-c-brand">` + escape(strings.TrimPrefix(title, "Sign in to ")) + `</div>
    </header>
`)
}

func foot(b *strings.Builder) {
	b.WriteString(`  </div>
</div>
</body>
</html>
`)
}
