package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// completers complete $LINE as a user of the shell does who presses Tab: what is printed has the values.
var completers = map[string]string{
	"bash": `. /usr/share/bash-completion/bash_completion
source <(simccl completion bash)
COMP_LINE=$LINE COMP_POINT=${#LINE}; COMP_WORDS=($LINE); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
__start_simccl; printf '%s\n' "${COMPREPLY[@]}"`,
	"fish": `simccl completion fish | source; complete -C "$LINE"`,
	"zsh": `zmodload zsh/zpty
zpty z "TERM=dumb COLUMNS=400 zsh -f -i"
zpty -w z 'PROMPT=; autoload -Uz compinit; compinit -u -D; source <(simccl completion zsh); compdef _simccl simccl
LISTMAX=10000; echo RE""ADY'
while zpty -r z line; do [[ $line == *READY* ]] && break; done
zpty -w -n z "$LINE"$'\t\t'
got=; for i in {1..600}; do
	while zpty -r -t z line; do got+=$line; done
	[[ $got == *$WANT* ]] && break; sleep 0.1
done
zpty -d z; print -r -- "$got"`,
	"pwsh": `simccl completion powershell | Out-String | Invoke-Expression
(TabExpansion2 $env:LINE $env:LINE.Length).CompletionMatches.CompletionText`,
}

// TestCompletionInShells: in each shell that is here Tab completes machines, networks, releases and words of
// the glossary.
func TestCompletionInShells(t *testing.T) {
	if testing.Short() {
		t.Skip("shells take seconds to start")
	}
	s := newShell(t)
	for name, script := range completers {
		t.Run(name, func(t *testing.T) {
			program, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("no %s here", name)
			}
			if _, err := os.Stat("/usr/share/bash-completion/bash_completion"); name == "bash" && err != nil {
				t.Skip("bash completes with the package bash-completion, which is not here")
			}
			file := filepath.Join(t.TempDir(), "complete."+strings.Replace(name, "pwsh", "ps1", 1))
			if err := os.WriteFile(file, []byte(script), 0o666); err != nil {
				t.Fatal(err)
			}
			for line, want := range map[string]string{"simccl run all_reduce --topo dgx-": "dgx-h100",
				"simccl run all_reduce --fabric u":         "ultra-ethernet",
				"simccl run all_reduce --nccl-version 2.2": "2.21.5",
				"simccl explain L":                         "LL128",
				"simccl network run --traffic we":          "websearch"} {
				c := exec.CommandContext(t.Context(), program, file)
				c.Dir, c.Env = s.dir, append(s.env, "LINE="+line, "WANT="+want)
				out, err := c.CombinedOutput()
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("%s<Tab>: %v, no %s in\n%s", line, err, want, out)
				}
			}
		})
	}
}
