package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	// shellName is a variable that a shell can export and that .env can hold.
	shellName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// tokenForm is what tokens of well-known git hosts look like where that is also the form of a name.
	tokenForm = regexp.MustCompile(`^(gh[a-z]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat_[A-Za-z0-9_]{20,})$`)
)

// kitPrefix starts the variables that are the Kit's own.
const kitPrefix = "JR2_"

// tokenNameProblem says why a variable cannot hold a git token. The Orchestrator reads its tokens from the Secret jr2-instance as its
// whole environment, under the same names, so a name that means something there would replace a key of ours or change the process.
func tokenNameProblem(name string) string {
	const wanted = "the name of one is wanted, never the token"
	switch {
	case !shellName.MatchString(name):
		return "is no name of an environment variable — " + wanted // never shown: it may be the token itself
	case tokenForm.MatchString(name):
		return "looks like a token — " + wanted
	case strings.HasPrefix(name, kitPrefix) && !strings.HasPrefix(name, kitPrefix+"GIT"):
		return fmt.Sprintf("%q is a name of the Kit's own, which would be replaced in the Orchestrator — take another, such as JR2_GIT_TOKEN", clip(name))
	case changesProcess(name):
		return fmt.Sprintf("%q would change how the Orchestrator's process runs — take another, such as JR2_GIT_TOKEN", clip(name))
	}
	return ""
}

// changesProcess says whether the dynamic loader, the runtime, its trust, git or the cluster's client read a variable.
func changesProcess(name string) bool {
	upper := strings.ToUpper(name)
	for _, prefix := range []string{"LD_", "NODE_", "KUBERNETES_", "DYLD_", "UV_", "GLIBC_", "MALLOC_", "GIT_CONFIG", "GIT_SSH", "GIT_SSL", "GIT_TRACE", "LC_"} {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	return slices.Contains(strings.Fields(`PATH HOME SHELL USER LOGNAME PWD OLDPWD HOSTNAME TMPDIR TMP TEMP TZ TERM LANG LANGUAGE IFS ENV BASH_ENV KUBECONFIG
		XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_RUNTIME_DIR GIT_ASKPASS SSH_ASKPASS SSH_AUTH_SOCK GIT_DIR GIT_WORK_TREE GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_PROXY_COMMAND
		GIT_TERMINAL_PROMPT GIT_EDITOR GIT_PAGER GIT_ALLOW_PROTOCOL HTTPS_PROXY HTTP_PROXY NO_PROXY ALL_PROXY FTP_PROXY SSL_CERT_FILE SSL_CERT_DIR OPENSSL_CONF
		OPENSSL_MODULES REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GCONV_PATH LOCPATH HOSTALIASES RES_OPTIONS`), upper)
}
