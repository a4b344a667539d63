#!/usr/bin/env bash
# The step `check` of the action: runs the check, writes the summary, and tells later steps what was found. It succeeds with
# findings, so that the steps that report them run; the last step of the action fails then.
set -euo pipefail

command -v tiphys >/dev/null || { echo '::error::tiphys is not on the PATH: leave the input version as it is, or install it in an earlier step'; exit 2; }
if [ "$CHECK_BASE" = auto ]; then
  CHECK_BASE=
  if [ -n "${GITHUB_BASE_REF:-}" ]; then
    CHECK_BASE=origin/$GITHUB_BASE_REF
    # A checkout has the last commit alone unless it was asked for more.
    git rev-parse --quiet --verify "$CHECK_BASE^{commit}" >/dev/null ||
      git fetch --quiet --no-tags --depth=1 origin "+refs/heads/$GITHUB_BASE_REF:refs/remotes/$CHECK_BASE"
  fi
fi
export CHECK_BASE
export CHECK_REPORTS=$RUNNER_TEMP/tiphys-check
export CHECK_OUTPUT=github
code=0
sh "$(dirname "${BASH_SOURCE[0]}")/../scripts/check.sh" || code=$?
[ "$code" -le 1 ] || { echo "::error::tiphys check could not run (exit code $code)"; exit "$code"; }
[ ! -f "$CHECK_REPORTS/report.md" ] || head -c 1000000 "$CHECK_REPORTS/report.md" >>"$GITHUB_STEP_SUMMARY"
[ -z "$CHECK_SARIF" ] || cp "$CHECK_REPORTS/report.sarif" "$CHECK_SARIF"
{
  echo "found=$code"
  echo "report=$CHECK_REPORTS/report.md"
  echo "sarif=$CHECK_REPORTS/report.sarif"
} >>"$GITHUB_OUTPUT"
